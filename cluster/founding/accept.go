package founding

import (
	"slices"
	"time"
)

// consider applies rule 3: it accepts ch and binds this instance to ch, or returns the reason for
// refusing. It accepts ch again after accepting it, because the first answer may have been lost.
func (c *Core) consider(ch *Charter) (Refusal, string) {
	if ch.Group == c.group && c.phase != Newborn && c.charter != nil {
		return Accepted, ""
	}
	refusal, detail := c.judge(ch)
	if refusal != Accepted {
		c.remember(ch.Group)
		return refusal, detail
	}
	c.bind(ch)
	return Accepted, ""
}

func (c *Core) remember(group uint64) {
	if slices.Contains(c.refused, group) {
		return
	}
	if len(c.refused) >= maxAnswered {
		c.refused = slices.Delete(c.refused, 0, 1)
	}
	c.refused = append(c.refused, group)
}

func (c *Core) judge(ch *Charter) (Refusal, string) {
	if flaw := ch.malformed(); flaw != "" {
		return RefusedMalformed, flaw
	}
	if c.settings.Solo && len(ch.List) > 1 {
		return RefusedSolo, ""
	}
	if slices.Contains(c.refused, ch.Group) {
		return RefusedRepeated, ""
	}
	if c.phase != Newborn {
		return RefusedPhase, "it is " + c.phase.String()
	}
	at := ch.listed(c.instance)
	if at < 0 || ch.List[at].Name != c.name || ch.List[at].Addr != c.addr {
		return RefusedUnlisted, ""
	}
	if which, _, _ := c.settings.difference(ch.Settings.normal()); which != "" {
		return RefusedSettings, which
	}
	if missing := ch.complete(c.settings); missing != "" {
		return RefusedIncomplete, missing
	}
	if ch.Rules > c.rules || ch.Rules == 0 {
		return RefusedRules, ""
	}
	if apart := time.Duration(ch.FoundedUnixMS-c.wall) * time.Millisecond; apart.Abs() > c.settings.slack() {
		return RefusedClock, "they are " + apart.Abs().String() + " apart"
	}
	if ch.FoundedUnixMS <= c.floor {
		return RefusedClock, "tokens from as late as " + clockText(c.floor) +
			" were seen here, and the founding time is not later"
	}
	return c.obstacle(ch)
}

// obstacle returns why this instance cannot accept ch now, or Accepted. A nil ch means any charter.
func (c *Core) obstacle(ch *Charter) (Refusal, string) {
	if c.unfit != "" {
		return RefusedDirectory, c.unfit
	}
	if c.settings.Solo {
		return Accepted, ""
	}
	for _, p := range c.places {
		who, ok := p.seen(c.now, freshFor)
		if ok && who.Leader && !who.Settings.Solo && (ch == nil || who.Group != ch.Group) {
			return RefusedGroup, p.label() + " belongs to group " + groupName(who.Group) + ", which has a leader"
		}
		if ok && !who.Settings.Solo {
			if text := c.claim(p, who, ch); text != "" {
				return RefusedClaim, text
			}
		}
	}
	for _, e := range c.join {
		if e.Failed != "" || c.now-e.Resolved > resolvedFor {
			return RefusedSilence, e.Unresolved()
		}
	}
	if !c.everyone() {
		return c.founding(ch)
	}
	for _, p := range c.places {
		if p.entry == "" {
			continue
		}
		if refusal, detail := c.permits(p, ch); refusal != Accepted {
			return refusal, detail
		}
	}
	return Accepted, ""
}

func (c *Core) permits(p *place, ch *Charter) (Refusal, string) {
	if !p.last.fresh(c.now, freshFor) {
		return RefusedSilence, c.silence(c.unanswered())
	}
	if p.last.outcome != Answered {
		// the port is closed, or the program there is no instance of this cluster
		return Accepted, ""
	}
	return c.stranger(p, &p.last.info, ch)
}

func (c *Core) unanswered() (list []*place) {
	for _, p := range c.places {
		if p.entry != "" && !p.last.fresh(c.now, freshFor) {
			list = append(list, p)
		}
	}
	return list
}

func (c *Core) stranger(p *place, who *InstanceInfo, ch *Charter) (Refusal, string) {
	switch {
	case who.Instance == c.instance:
		return Accepted, ""
	case who.Settings.Solo:
		return RefusedStranger, p.label() + " runs alone, without Join: set Join on all instances"
	case who.Phase == Member:
		return RefusedStranger, p.label() + " still belongs to group " + groupName(who.Group) + ", which has no leader"
	case who.Phase == Bound && (ch == nil || who.Group != ch.Group):
		return RefusedStranger, p.label() + " is bound to another attempt to found a group"
	case ch == nil:
		return Accepted, ""
	case ch.listed(who.Instance) < 0 && c.settings.founds(who.Name):
		return RefusedStranger, p.label() + " is not on the list"
	}
	return Accepted, ""
}

func (c *Core) bind(ch *Charter) {
	own := *ch
	own.List, own.Voters = slices.Clone(ch.List), slices.Clone(ch.Voters)
	own.Settings, own.Supersedes = ch.Settings.normal(), slices.Clone(ch.Supersedes)
	c.phase, c.charter, c.group, c.rulesOf = Bound, &own, ch.Group, own.Settings
	c.at, c.raft, c.supersedes = 1, own.Raft(c.instance), own.Supersedes
	c.bound = make([]bool, len(own.List))
	c.bound[own.listed(c.instance)] = true
	c.stale = true
	c.revision++
	for _, p := range c.places {
		p.next = c.now
	}
	c.events = append(c.events, Event{Kind: BoundTo, Charter: own, Group: own.Group, Raft: c.raft})
}
