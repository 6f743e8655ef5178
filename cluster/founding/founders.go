package founding

import (
	"slices"
	"strconv"
)

// This file contains rule 3 for a group with Founders.

// founding returns why a founder cannot accept ch, or Accepted. A nil ch means any charter.
func (c *Core) founding(ch *Charter) (Refusal, string) {
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if !ok || p.entry == "" && !c.settings.founds(who.Name) || c.bystander(who) {
			continue
		}
		if refusal, detail := c.stranger(p, who, ch); refusal != Accepted {
			return refusal, detail
		}
	}
	switch missing := c.silentFounders(ch); {
	case len(missing) > 0 && ch == nil:
		return RefusedSilence, c.withoutFounders(missing)
	case len(missing) > 0:
		return RefusedSilence, "no answer from " + some(missing) + c.absent() + c.muted()
	}
	if list := c.silentJoin(); len(list) > 0 {
		return RefusedSilence, c.silence(list)
	}
	if !c.sampled() {
		return RefusedSilence, "it is still asking other addresses from Join for a running group"
	}
	return Accepted, ""
}

// bystander reports whether founding may ignore an answering instance. Such an instance is no
// founder, and it is a newborn or a member of a group with the same founders.
func (c *Core) bystander(who *InstanceInfo) bool {
	if c.settings.founds(who.Name) || who.Settings.Solo || who.Phase == Bound {
		return false
	}
	return who.Phase == Newborn || slices.Equal(who.Settings.Founders, c.settings.Founders) &&
		who.Settings.Replicas == 0
}

func (c *Core) silentFounders(ch *Charter) []string {
	var missing []string
	if ch == nil {
		for _, name := range c.absentFounders(freshFor) {
			missing = append(missing, strconv.Quote(name))
		}
		return missing
	}
	for _, l := range ch.List {
		if l.Instance == c.instance {
			continue
		}
		at, found := find(c.places, l.Addr)
		if found {
			if who, ok := c.places[at].seen(c.now, freshFor); ok && who.Instance == l.Instance {
				continue
			}
		}
		missing = append(missing, nameOf(l.Name, l.Addr))
	}
	return missing
}

func (c *Core) silentJoin() []*place {
	if len(c.settings.Founders) != 1 || c.settings.Founders[0] != c.name {
		return nil
	}
	return c.mute()
}

func (c *Core) mute() (list []*place) {
	for _, p := range c.places {
		if p.entry != "" && p.mute {
			list = append(list, p)
		}
	}
	return list
}

func (c *Core) muted() string { return orEmpty("; ", c.silence(c.mute())) }

func (c *Core) waitingJoiner() string {
	text := "this instance is not one of the Founders: it joins as soon as it meets a member of a group that has " +
		"a leader"
	var met, others []string
	for _, p := range c.places {
		who, ok := p.seen(c.now, metFor)
		if ok && !c.known(p) && who.Instance != c.instance {
			others = append(others, p.label())
		}
		if !ok || !c.known(p) || slices.Contains(met, who.Name) {
			continue
		}
		if met = append(met, who.Name); who.Phase == Newborn && who.Obstacle != "" {
			return text + "; the founder " + p.label() + " waits: " + who.Obstacle
		}
	}
	var missing []string
	for _, f := range c.settings.Founders {
		if !slices.Contains(met, f) {
			missing = append(missing, strconv.Quote(f))
		}
	}
	if len(met) == 0 && len(others) > 0 {
		return text + "; it has met none of them (" + some(missing) + "), and sees " + some(others) +
			": to let these found the group, list the Name of each (the host name by default) in Founders, and " +
			"that of this one (" +
			strconv.Quote(c.name) + ") too"
	}
	if len(missing) > 0 {
		return text + "; it has not met the founders " + some(missing) + c.absent()
	}
	return text + "; it has met all the Founders"
}
