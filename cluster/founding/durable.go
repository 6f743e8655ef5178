package founding

import "slices"

// resume continues from the stored State. A change that was not stored has never been sent, so it
// may be lost.
func (c *Core) resume(s *State) {
	if s != nil {
		c.gaveUp, c.floor = slices.Clone(s.GaveUp), s.FloorUnixMS
	}
	if s == nil || s.Phase == Newborn {
		c.lastAddr = c.addr
		return // keep the new ID, because the refusals made under the stored ID are not stored
	}
	c.instance, c.phase, c.group, c.charter, c.rulesOf = s.Instance, s.Phase, s.Group, s.Charter, s.Settings.normal()
	c.voters, c.lastAddr, c.settling = slices.Clone(s.Voters), s.Addr, true
	c.at, c.supersedes = max(s.At, 1), slices.Clone(s.Supersedes)
	c.replica = replica{raft: s.Raft, term: s.Term, used: slices.Clone(s.Used), usedAt: s.UsedAt, lingers: s.Lingers}
	for _, v := range c.voters {
		if v.Instance != c.instance {
			c.alive(v.Instance, v.Life, 0, v.Addr, false)
		}
	}
	if c.charter == nil {
		return
	}
	if len(c.voters) == 0 {
		c.voters = slices.Clone(c.charter.Voters)
	}
	c.bound = make([]bool, len(c.charter.List))
	c.bound[c.charter.listed(c.instance)] = true
}

// settle checks, before a resumed instance takes part, whether another process has its ID. It waits
// until every address has answered or refused, but at most settleWithin, because after a power
// failure this may be the only instance.
func (c *Core) settle() {
	if c.until == 0 {
		c.until = c.now + settleWithin
	}
	if c.now < c.until && !c.settings.Solo && c.unsettled() {
		return
	}
	c.settling, c.lastAddr, c.until, c.stale = false, c.addr, 0, true
	c.since, c.sinceWall = c.now, c.wall
	c.revision++
	c.searchUntil = c.now + searchFor
	raft := max(c.raft, c.lingers)
	var first []Event // events that precede those that arrived during settling
	switch {
	case c.charter != nil && c.charter.Raft(c.instance) == raft:
		first = append(first, Event{Kind: BoundTo, Charter: *c.charter, Group: c.group, Raft: raft})
	case raft != 0:
		first = append(first, Event{Kind: Prepared, Group: c.group, Raft: raft})
	}
	if c.phase == Member {
		first = append(first, Event{Kind: Joined, Group: c.group, At: c.at, Voters: slices.Clone(c.voters)})
	}
	if c.lingers != 0 {
		first = append(first, Event{Kind: Removed, Group: c.group, Raft: c.lingers})
	}
	c.events = append(first, c.events...)
}

// searches reports whether a restarted voter still searches for other voters, whose addresses may
// have changed too.
func (c *Core) searches() bool {
	began := c.searchUntil - searchFor
	return c.now < c.searchUntil && c.phase == Member && c.named() && slices.ContainsFunc(c.voters, func(v Voter) bool {
		met := c.lastMet(v.Instance)
		return v.Instance != c.instance && (met == nil || met.at <= began)
	})
}

func (c *Core) unsettled() bool {
	for _, e := range c.join {
		if e.Failed != "" || c.now-e.Resolved > resolvedFor {
			return true
		}
	}
	heard, named := 0, 0
	for _, p := range c.places {
		silent := p.last.outcome == Silent
		if silent && (c.everyone() || p.near) {
			return true
		}
		if p.entry != "" {
			named++
			if !silent {
				heard++
			}
		}
	}
	return heard < min(named, maxSettle)
}

// Unsaved records that the State could not be stored, and why. It returns the part of out that may
// still be carried out. From then on the core neither proposes nor accepts a charter, and it
// restarts in place if it is bound to a charter that was not stored. An instance may remain or
// become a member, because a member promises nothing. State need not be stored again.
func (c *Core) Unsaved(out Output, why string) Output {
	c.unfit = "its directory cannot be written (" + why + "): repair or empty it, and start the instance again"
	fresh := slices.ContainsFunc(out.Events, func(e Event) bool { return e.Kind == Joined })
	if c.phase != Member || (fresh && c.charter == nil) {
		c.durable = false
	}
	// A prepared replica must not begin. A removed replica stops but keeps its log, because the
	// next start may resume the replica from the last stored State.
	unsaid := func(e Event) bool { return e.Kind == Prepared || e.Kind == Removed }
	if c.phase == Bound {
		c.doomed = c.unfit
		unsaid = func(e Event) bool { return e.Kind == BoundTo }
		out.Questions = nil
	}
	c.events, out.Events = slices.DeleteFunc(c.events, unsaid), slices.DeleteFunc(out.Events, unsaid)
	c.lingers = 0
	if c.phase == Member && c.raft != 0 {
		c.spend() // the replica stops voting; its ID may or may not be stored
	}
	out.Next = c.now
	return out
}

func (c *Core) bar(text string) {
	if c.barred != "" {
		return
	}
	c.barred = text
	c.revision++
	c.events = append(c.events[:0], Event{Kind: Barred, Text: text})
}

// Refusal returns why this instance is barred, or "".
func (c *Core) Refusal() string { return c.barred }

// Settling reports whether this instance is still settling. It does not take part yet.
func (c *Core) Settling() bool { return c.settling }

// Life returns the number of this start.
func (c *Core) Life() uint64 { return c.life }

func (c *Core) claim(p *place, who *InstanceInfo, ch *Charter) string {
	switch {
	case !who.Durable || who.Phase == Newborn || (ch != nil && who.Group == ch.Group):
		return ""
	case who.Phase == Bound:
		return p.label() + " is bound to another attempt to found a group, until all instances are in reach"
	}
	if slices.Contains(c.gaveUp, who.Group) {
		return p.label() + " keeps group " + groupName(who.Group) +
			", which was given up here, in its directory: give it up there too, with " +
			"Recover, or stop that instance"
	}
	return p.label() + " keeps in its directory group " + groupName(who.Group) +
		", which has no leader: bring back its voters, with their " +
		"directories; if those are lost, give the group up with Recover on all instances of it that are left"
}

// waitingDurable returns the Waiting text of a durable member without a leader. The text contains
// absolute times, so it changes only when something happens.
func (c *Core) waitingDurable() string {
	if text := c.cutOff(); text != "" {
		return text
	}
	text := "group " + groupName(c.group) + " has no leader (since " + clockText(c.sinceWall) + c.orEarlier() + ")"
	var gone, anew []string
	for _, v := range c.voters {
		seen := c.lastMet(v.Instance)
		if v.Instance == c.instance || v.Learner || (seen != nil && c.now-seen.at <= reachedFor) {
			continue
		}
		if name := c.successor(v); name != "" {
			anew = append(anew, name)
			continue
		}
		when := "no answer since " + clockText(c.sinceWall) + " or earlier"
		if seen != nil && seen.at > c.since {
			when = "last answered " + clockText(seen.wall)
		}
		gone = append(gone, c.voterName(v)+" ("+when+")")
	}
	if who := c.elsewhere(); who != nil {
		return text + "; " + nameOf(who.Name, who.Addr) + " belongs to group " + groupName(who.Group) +
			", which has one: if this group is lost for good, give it up with Recover, and this instance joins that one"
	}
	switch {
	case len(anew) > 0:
		text += "; " + some(anew) + " " + plural(len(anew), "runs", "run") + " without this group's log, from a new " +
			"directory: stop " + plural(len(anew), "it and start it with its", "them and start them with their") +
			" old directory"
		if len(gone) == 0 {
			return text + "; if that is lost for good, give the group up with Recover on this instance, and the " +
				"instances that run found a new one"
		}
	case len(gone) > 0:
	case c.now-c.since > electedWithin:
		return text + "; all its voters answer, but no leader has been elected: check their disks and the network " +
			"between them"
	default:
		return text + "; all its voters answer and are electing one"
	}
	return text + "; of its voters, " + some(gone) +
		" cannot be reached: bring them back, with their directories. Nothing is granted until " +
		"then, and no state is lost (a holder keeps its lock until its lease runs out); if they are gone for " +
		"good, Recover gives the group up"
}

// orEarlier qualifies c.sinceWall: only an instance that has lost its leader has observed when that
// was.
func (c *Core) orEarlier() string {
	if c.lostLeader {
		return ""
	}
	return " or earlier, as this instance has known none since it began"
}

// successor returns the label of a newborn that answers at the address or under the name of a
// voter, or "". The voter has lost its directory then.
func (c *Core) successor(v Voter) string {
	for _, p := range c.places {
		who, ok := p.seen(c.now, reachedFor)
		if ok && who.Phase == Newborn && who.Instance != v.Instance &&
			(p.addr == v.Addr || who.Name != "" && who.Name == c.nameOf(v.Instance)) {
			return p.label()
		}
	}
	return ""
}

func (c *Core) voterName(v Voter) string {
	return nameOf(c.nameOf(v.Instance), v.Addr)
}

func (c *Core) elsewhere() *InstanceInfo {
	for _, p := range c.places {
		if who, ok := p.seen(c.now, reachedFor); ok && who.Leader && who.Phase == Member && who.Group != c.group &&
			!who.Settings.Solo {
			return who
		}
	}
	return nil
}

func (c *Core) keepNote() string {
	missing := c.unreached(c.now - reachedFor)
	if !c.durable || missing == "" {
		return ""
	}
	return "; its directory keeps the charter until all instances are in reach, but " + missing
}
