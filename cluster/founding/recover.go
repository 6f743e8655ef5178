package founding

import (
	"errors"
	"slices"
	"time"
)

// Recover gives up the group that this instance's directory keeps, for good, by a restart in place:
// the explicit way out for a group that has lost the majority of its voters, to be called on each
// instance of it that is left. What they found then takes the place of the group: members of it
// that are met later go too. An error says why it was not given up and what to do; given up before
// is no error.
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
		return errors.New("this instance belongs to no group, so there is none to give up: call it on the instances that keep group " + name)
	case c.group != group:
		return errors.New("this instance belongs to group " + groupName(c.group) + ", not to " + name +
			": name the one that its status shows")
	case c.unfit != "":
		return errors.New(c.unfit)
	case c.phase == Bound:
		return errors.New("group " + name +
			" is not known to be born: start all instances of it, then it is born, or the attempt ends by itself")
	case c.settling:
		return errors.New("this instance has just been started and looks around first: try again in two seconds")
	}
	if text := c.led(); text != "" {
		return errors.New("group " + name + " is not lost: " + text +
			"; wait until all instances of it reach that leader")
	}
	if !slices.Contains(c.gaveUp, group) {
		if len(c.gaveUp) >= gaveUpMax {
			c.gaveUp = slices.Delete(c.gaveUp, 0, 1)
		}
		c.gaveUp = append(c.gaveUp, group)
	}
	c.doomed = "group " + name + " was given up by Recover"
	return nil
}

// led says who knows a leader of the group, or returns "".
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

// superseded ends this life if its group was given up by people: an instance is met whose group has
// taken its place and has a leader. That the group's other members have been given up is what they
// have seen to; this one was out of reach then. Its voters of before have new IDs now, so there is
// none whose word could be proved. It has to be at an address that Join names, and no voter that is
// known may have answered for the largest TTL: else any holder of the secret could end the group's
// directories one by one, at an election or a restart.
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

// sorted returns IDs in ascending order, each once; nil if there are none.
func sorted(ids []uint64) []uint64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}

// union returns two sets of IDs as one, cut to what a charter carries.
func union(a, b []uint64) []uint64 {
	all := sorted(slices.Concat(a, b))
	return all[:min(len(all), supersedesMax)]
}
