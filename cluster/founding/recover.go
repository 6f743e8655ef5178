package founding

import (
	"errors"
	"slices"
	"time"
)

// Recover gives up the group in this instance's directory for good, by a restart in place. Call
// Recover only for a group that has lost the majority of its voters, and on each remaining instance
// of the group. The next group of these instances replaces the lost group, and remaining members of
// the lost group leave it when they meet the new one. An error says why the group was not given up
// and what to do. Recover returns nil if this instance has given the group up before.
func (c *Core) Recover(now time.Duration, group uint64) error {
	c.now = now
	name := groupName(group)
	if group == 0 {
		return errors.New("name the group that is given up, as the status of this instance shows it")
	}
	if slices.Contains(c.gaveUp, group) && (c.group != group || c.doomed != "") {
		return nil
	}
	switch {
	case c.barred != "":
		return errors.New(c.barred)
	case c.phase == Newborn:
		return errors.New("this instance belongs to no group, so there is none to give up: call Recover on the " +
			"instances that keep group " + name)
	case c.group != group:
		return errors.New("this instance belongs to group " + groupName(c.group) + ", not to " + name +
			": name the one that its status shows")
	case c.unfit != "":
		return errors.New(c.unfit)
	case c.phase == Bound:
		return errors.New("group " + name +
			" is not known to be founded: start all its instances, then its founding completes or ends by itself")
	case c.settling:
		return errors.New("this instance has just been started and is still looking for other instances: try " +
			"again in two seconds")
	}
	if text := c.led(); text != "" {
		return errors.New("group " + name + " is not lost: " + text +
			"; wait until all instances of it reach that leader")
	}
	if !slices.Contains(c.gaveUp, group) {
		if len(c.gaveUp) >= maxGaveUp {
			c.gaveUp = slices.Delete(c.gaveUp, 0, 1)
		}
		c.gaveUp = append(c.gaveUp, group)
	}
	c.doomed = "group " + name + " was given up by Recover"
	return nil
}

func (c *Core) led() string {
	if c.leader {
		return "this instance knows its leader"
	}
	for _, p := range c.places {
		if who, ok := p.seen(c.now, reachedFor); ok && who.Leader && who.Group == c.group && !who.Settings.Solo {
			return p.label() + " knows its leader"
		}
	}
	return ""
}

// superseded ends this incarnation if operators have given up the group, and reports whether it
// did. The report comes from an instance of the replacing group, because the old voters have new
// IDs by then. The conditions prevent a holder of the secret from ending the group one directory
// at a time.
func (c *Core) superseded() bool {
	if c.leader || !c.durable || c.settings.Solo || !c.lost() {
		return false
	}
	for _, p := range c.places {
		who, ok := p.seen(c.now, reachedFor)
		named := p.entry != ""
		if ok && named && who.Phase == Member && who.Leader && !who.Settings.Solo &&
			slices.Contains(who.Supersedes, c.group) {
			c.doomed = "group " + groupName(c.group) + " was given up, and " + p.label() + " belongs to group " +
				groupName(who.Group) +
				", which has taken its place"
			return true
		}
	}
	return false
}

func sorted(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

func union(a, b []uint64) []uint64 {
	all := sorted(slices.Concat(a, b))
	return all[:min(len(all), maxSupersedes)]
}
