package founding

import "slices"

// This file is what a core does only with a directory: begin where the last start ended, settle
// before it takes part, and stop where its directory fails it.

// resume makes a new core go on where the stored one ended. What was not stored was never said, so
// it need not be known.
func (c *Core) resume(s *State) {
	if s != nil {
		c.gaveUp, c.floor = slices.Clone(s.GaveUp), s.FloorUnixMS
	}
	if s == nil || s.Phase == Newborn {
		c.home = c.addr
		return // it takes the ID that it is given, since the charters that the last one has refused were not stored
	}
	c.instance, c.phase, c.group, c.charter, c.rulesOf = s.Instance, s.Phase, s.Group, s.Charter, s.Settings.normal()
	c.voters, c.home, c.settling = slices.Clone(s.Voters), s.Addr, true
	c.at, c.supersedes = max(s.At, 1), slices.Clone(s.Supersedes)
	c.replica = replica{raft: s.Raft, term: s.Term, used: slices.Clone(s.Used), usedAt: s.UsedAt, lingers: s.Lingers}
	for _, v := range c.voters {
		if v.Instance != c.instance {
			c.alive(v.Instance, v.Life, v.Addr, false)
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

// settle looks around before a resumed instance takes part: whether a copy of its directory runs,
// or others have seen a later life of it. It waits for every place to answer or refuse, but for
// silent ones only so long: alone after a power failure it has to begin.
func (c *Core) settle() {
	if c.until == 0 {
		c.until = c.now + settleWithin
	}
	if c.now < c.until && !c.settings.Solo && c.unsettled() {
		return
	}
	c.settling, c.home, c.until, c.stale = false, c.addr, 0, true
	c.since, c.sinceWall = c.now, c.wall
	c.revision++
	c.seekUntil = c.now + seekFor
	raft := max(c.raft, c.lingers)
	var first []Event // before what was heard meanwhile
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

// seeks reports whether a voter that was started again looks for voters that may live elsewhere now
// too: its question is how they learn where it lives, and their answers say where they do.
func (c *Core) seeks() bool {
	began := c.seekUntil - seekFor
	return c.now < c.seekUntil && c.phase == Member && c.named() && slices.ContainsFunc(c.voters, func(v Voter) bool {
		met := c.lastMet(v.Instance)
		return v.Instance != c.instance && (met == nil || met.at <= began)
	})
}

// unsettled reports whether some place has neither answered nor refused since this start.
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
	return heard < min(named, settleMost)
}

// Unsaved takes that the State could not be stored, and why, and returns what of the output that
// was waiting for it may still be carried out. From then on the core promises nothing new: it
// neither proposes nor accepts, and what it was bound to in vain it leaves by a restart in place.
// It stays a member if it was one, and may become one, since that promises nothing. State need not
// be stored again.
func (c *Core) Unsaved(out Output, why string) Output {
	c.unfit = "its directory cannot be written (" + why + "): mend or empty it, and start the instance again"
	fresh := slices.ContainsFunc(out.Events, func(e Event) bool { return e.Kind == Joined })
	if c.phase != Member || (fresh && c.charter == nil) {
		c.durable = false // no directory holds on to what this life is
	}
	// What was prepared may not begin, and what was removed only stops: by its last State the
	// directory may go on with it, and needs its log.
	unsaid := func(e Event) bool { return e.Kind == Prepared || e.Kind == Removed }
	if c.phase == Bound {
		c.doomed = c.unfit
		unsaid = func(e Event) bool { return e.Kind == BoundTo }
		out.Questions = nil
	}
	c.events, out.Events = slices.DeleteFunc(c.events, unsaid), slices.DeleteFunc(out.Events, unsaid)
	c.lingers = 0
	if c.phase == Member && c.raft != 0 {
		c.spend() // it stops to vote; whether the directory has its ID is not known any more
	}
	out.Next = c.now
	return out
}

// bar ends this instance for ever: it is not the one that its directory says it is.
func (c *Core) bar(text string) {
	if c.barred != "" {
		return
	}
	c.barred = text
	c.revision++
	c.events = append(c.events[:0], Event{Kind: Barred, Text: text})
}

// Refusal says why this instance refuses to take part, or returns "".
func (c *Core) Refusal() string { return c.barred }

// Settling reports whether this instance still looks around before it takes part, and so is not to
// be counted on.
func (c *Core) Settling() bool { return c.settling }

// Life returns the number of this start.
func (c *Core) Life() uint64 { return c.life }

// claim says why an instance with a directory, wherever it is met, keeps this one from accepting
// the charter (nil: any): its group is kept until people say that it is lost (rule 7).
func (c *Core) claim(p *place, who *Who, ch *Charter) string {
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
	return p.label() + " keeps group " + groupName(who.Group) +
		" in its directory, which has no leader: bring back its voters, with their " +
		"directories; if those are lost, give the group up with Recover on all instances of it that are left"
}

// waitingDurable is what a durable member without a leader waits for. Times are of the wall clock,
// so that the sentence stays the same.
func (c *Core) waitingDurable() string {
	if text := c.cutOff(); text != "" {
		return text
	}
	text := "group " + groupName(c.group) + " has no leader since " + clockText(c.sinceWall)
	var gone []string
	for _, v := range c.voters {
		seen := c.lastMet(v.Instance)
		if v.Instance == c.instance || v.Learner || (seen != nil && c.now-seen.at <= reachedFor) {
			continue
		}
		since := c.sinceWall
		if seen != nil {
			since = max(since, seen.wall)
		}
		gone = append(gone, c.voterName(v)+" (since "+clockText(since)+")")
	}
	if who := c.elsewhere(); who != nil {
		return text + "; " + nameOf(who.Name, who.Addr) + " belongs to group " + groupName(who.Group) +
			", which has one: if this group is lost for good, give it up with Recover, and this instance joins that one"
	}
	switch {
	case len(gone) > 0:
	case c.now-c.since > electedWithin:
		return text + "; all its voters answer, and none is elected: see to their disks, and to the network between them"
	default:
		return text + "; all its voters answer, and elect one"
	}
	return text + "; of its voters, " + some(gone) +
		" cannot be reached: bring them back, with their directories. Nothing is granted until " +
		"then, and no state is lost (a holder keeps its lock until its lease runs out); if they are gone for good, Recover gives the group up"
}

// voterName names a voter for people.
func (c *Core) voterName(v Voter) string {
	if c.charter != nil {
		if at := c.charter.listed(v.Instance); at >= 0 {
			return nameOf(c.charter.List[at].Name, v.Addr)
		}
	}
	return v.Addr
}

// elsewhere returns somebody who belongs to another group that has a leader.
func (c *Core) elsewhere() *Who {
	for _, p := range c.places {
		if who, ok := p.seen(c.now, reachedFor); ok && who.Leader && who.Phase == Member && who.Group != c.group &&
			!who.Settings.Solo {
			return who
		}
	}
	return nil
}

// keepNote says, of a bound instance with a directory, why it does not give up though time is over.
func (c *Core) keepNote() string {
	missing := c.unreached(c.now - reachedFor)
	if !c.durable || missing == "" {
		return ""
	}
	return "; its directory keeps the charter until everybody is in reach, and " + missing
}
