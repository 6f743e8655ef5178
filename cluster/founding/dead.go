package founding

import (
	"slices"
	"strconv"
	"time"
)

// This file is the rule by which a group in memory is given up: only if it is dead.
//
// A voter is alive if its life has answered lately that its replica runs. It is over if its replica
// can never vote again: its own life says so, another life answers at its address or to its name,
// or it has said goodbye. A voter that is silent is neither. Over never ends in memory, so a group
// that is dead stays dead, and no timing of questions, dials and elections makes the rule wrong.

// member is rules 6 and 7. A member whose group has a leader does nothing here, nor does one with a
// directory: what it holds may be the only copy of what others have been promised, so only people
// give it up.
func (c *Core) member() {
	c.follow(c.newest())
	c.follow(c.applied.Voters)
	after := c.since + max(c.settings.SessionTTL, c.rulesOf.SessionTTL)
	for _, g := range c.later(after) {
		c.follow(g.Voters)
	}
	if c.superseded() {
		return
	}
	if c.leader || c.settings.Solo || c.durable || c.now <= after {
		c.whole = 0
		return // its locks may still be believed in
	}
	other, own := c.leaders(after)
	reached := c.unreached(after) == ""
	if own || !reached && !other {
		c.whole = 0
		return // it has only lost sight of its leader, or those that a new group needs are missing
	}
	if c.whole == 0 {
		c.whole = c.now
	}
	c.doubt(after)
	reason := "group " + groupName(c.group) + " has had no leader for " + (c.now - c.since).Round(time.Second).String()
	switch {
	case other && c.forsaken(after):
		c.doomed = reason + ", no majority of its voters answers, and another group that has a leader is in reach"
	case reached && c.distinct(after) && c.dead(after):
		c.doomed = reason + ", its majority is over, and everybody is in reach, so a new group can be founded"
	}
}

// leaders reports whether an instance has answered lately that another group has a leader, and
// whether one has that this group does. What was learned before that time proves nothing.
func (c *Core) leaders(after time.Duration) (other, own bool) {
	for _, p := range c.places {
		who, ok := p.seenSince(after, c.now)
		if !ok || !who.Leader || who.Settings.Solo {
			continue
		}
		own = own || who.Group == c.group
		other = other || who.Group != c.group && who.Phase == Member
	}
	return other, own
}

// dead reports whether the voters that are not over are a majority in no configuration that
// matters.
func (c *Core) dead(after time.Duration) bool {
	return !slices.ContainsFunc(c.configurations(after), func(g Configuration) bool {
		return !c.unapplied(g) && !c.stuck(g) && g.majority(func(v Voter) bool { return !c.over(v, after) })
	})
}

// stuck reports whether no voter of a configuration can ever be elected in it, though a majority
// runs: each is over, or has applied another one, or does not get the votes of a majority. A voter
// gives no vote to one that lacks what it has in its log, nor to one that the configuration applied
// there does not name, since it ignores what comes under an unknown raft ID. So it is if a leader
// that has changed the voters ends before all know it. What the leader has sent must have arrived
// by then, and all must have said so since.
func (c *Core) stuck(g Configuration) bool {
	since := c.whole + hearsayOver
	if c.whole == 0 || c.now <= since {
		return false
	}
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner || c.over(v, since) {
			return false // it is no candidate
		}
		applied, log := c.stands(v, since)
		if log.Term == 0 || applied.At == 0 {
			return true // it is silent, or has not said how it stands
		}
		return applied.At == g.At && g.majority(func(w Voter) bool {
			knows, other := c.stands(w, since)
			return !c.over(w, since) && !other.ahead(log) && (knows.At == 0 || knows.names(v.Raft))
		})
	})
}

// stands returns the configuration that a voter has applied, and how far its log goes, as it has
// said lately: zeros if it has not.
func (c *Core) stands(v Voter, after time.Duration) (applied Configuration, log Log) {
	if v.Instance == c.instance && c.runs() == v.Raft {
		return c.applied, c.ownLog()
	}
	if who := c.answering(v, after); who != nil && who.Standing != nil && who.Group == c.group && !who.Leader {
		return who.Standing.Applied, who.Standing.Log
	}
	return Configuration{}, Log{}
}

// names reports whether a configuration has a replica with that raft ID.
func (g *Configuration) names(raft uint64) bool {
	return slices.ContainsFunc(g.Voters, func(v Voter) bool { return v.Raft == raft })
}

// doubt notes since when the newest configuration that is known is refuted without a break.
func (c *Core) doubt(after time.Duration) {
	switch g := (Configuration{At: c.at, Voters: c.newest()}); {
	case !c.refuted(g, after):
		c.doubts = doubts{}
	case c.doubts.at != g.At:
		c.doubts = doubts{at: g.At, since: c.now}
	}
}

// refuted reports whether no voter of a configuration has applied it: each is over, or its replica
// runs and has told that it has applied another. A voter that is silent, or does not tell, may
// have.
func (c *Core) refuted(g Configuration, after time.Duration) bool {
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner {
			return false // it is no candidate
		}
		if !c.running(v, after) {
			return !c.over(v, after)
		}
		applied := c.applied.At
		if v.Instance != c.instance {
			who := c.answering(v, after)
			if who.Standing == nil || who.Group != c.group {
				return true
			}
			applied = who.Standing.Applied.At
		}
		return applied == 0 || applied == g.At
	})
}

// unapplied reports whether a configuration is known by hearsay alone and has been refuted for so
// long that nothing which its leader sent before it ended can arrive any more.
func (c *Core) unapplied(g Configuration) bool {
	return !g.told && g.At == c.doubts.at && c.whole > 0 && c.now-max(c.whole, c.doubts.since) > hearsayOver
}

// forsaken reports whether another group with a leader is a reason to go. Without a replica of its
// own this instance takes nothing from its group, so it is enough that no majority of the group's
// voters answers. With one, the group has to be dead.
func (c *Core) forsaken(after time.Duration) bool {
	if c.runs() != 0 {
		return c.dead(after)
	}
	return !slices.ContainsFunc(c.configurations(after), func(g Configuration) bool {
		return g.majority(func(v Voter) bool { return c.running(v, after) || !c.over(v, after) && !c.triedSince(v) })
	})
}

// triedSince reports whether a voter was asked in vain since another group was met.
func (c *Core) triedSince(v Voter) bool {
	at, found := find(c.places, v.Addr)
	return found && c.places[at].ended > c.whole
}

// configurations returns the newest that is known, and those that voters which are alive have
// applied.
func (c *Core) configurations(after time.Duration) []Configuration {
	var list []Configuration
	add := func(g Configuration) {
		at := slices.IndexFunc(list, func(o Configuration) bool { return o.At == g.At })
		switch {
		case at >= 0 && g.told && !list[at].told:
			list[at] = g
		case at < 0 && len(g.Voters) > 0 && len(list) < votersMax:
			list = append(list, g)
		}
	}
	add(Configuration{At: c.at, Voters: c.newest(), told: c.at <= 1})
	if c.runs() != 0 || c.applied.At == c.at {
		add(c.applied) // with its halves
	}
	for i := 0; i < len(list); i++ {
		for _, v := range list[i].Voters {
			if who := c.answering(v, after); who != nil && who.Standing != nil && who.Group == c.group {
				add(who.Standing.Applied)
			}
		}
	}
	for _, g := range c.later(after) {
		add(g)
	}
	return list
}

// later returns the configurations newer than any that is known here of which instances say lately
// that a replica of this group there has applied them. This instance may have been cut off while
// the voters changed, and the voters that it knows may all be gone. Such a word is not believed for
// anything else: it can only keep this instance in its group, as the word can that the group has a
// leader.
func (c *Core) later(after time.Duration) (list []Configuration) {
	for _, p := range c.places {
		who, ok := p.seenSince(after, c.now)
		if !ok || who.Phase != Member || who.Group != c.group || who.Standing == nil || who.Standing.Raft == 0 {
			continue
		}
		if g := who.Standing.Applied; g.At > c.at && len(list) < votersMax {
			list = append(list, g)
		}
	}
	return list
}

// majority reports whether the voters that are meant are a majority: of both halves if it is joint.
func (g *Configuration) majority(meant func(Voter) bool) bool {
	half := func(in func(Voter) bool) bool {
		n, all := 0, 0
		for _, v := range g.Voters {
			if !v.Learner && in(v) {
				all++
				if meant(v) {
					n++
				}
			}
		}
		if !g.told && (all%2 == 0 || all >= 7) {
			return 4*n > all // it may be joint, and a quarter of both halves may be a majority of each
		}
		return 2*n > all
	}
	if len(g.Outgoing) == 0 {
		return half(func(Voter) bool { return true })
	}
	incoming := half(func(v Voter) bool { return slices.Contains(g.Incoming, v.Raft) })
	return incoming && half(func(v Voter) bool { return slices.Contains(g.Outgoing, v.Raft) })
}

// answering returns what the life of a voter has answered lately, if its replica runs.
func (c *Core) answering(v Voter, after time.Duration) *Who {
	for _, p := range c.places {
		who, ok := p.seenSince(after, c.now)
		if !ok || who.Instance != v.Instance || who.Phase == Newborn {
			continue
		}
		if who.Standing == nil || who.Standing.Raft == v.Raft {
			return who
		}
	}
	return nil
}

// running reports whether the replica of a voter runs.
func (c *Core) running(v Voter, after time.Duration) bool {
	if v.Instance == c.instance {
		return c.runs() == v.Raft
	}
	return c.answering(v, after) != nil
}

// over reports whether a voter never votes again. With Replicas, a voter that has been silent for
// ten minutes counts too, if all that a new group needs have answered all the time.
func (c *Core) over(v Voter, after time.Duration) bool {
	switch f := c.fateOf(v.Raft); {
	case c.running(v, after):
		return false
	case v.Instance == c.instance:
		return true
	case f == nil:
		return false
	case len(c.needed()) == 0 && c.whole > 0 && c.now-max(c.whole, f.heard, f.known) > silentOver:
		return true
	default: // this life may be what has taken its place
		return f.over || v.Addr == c.addr && !f.durable || c.replaces(c.name, f) || c.excluded(f, after)
	}
}

// excluded reports whether a replica is over whose name was never learned: it got its vote while
// this instance was cut off from it. Only founders get one, and under the name of each another life
// has answered since.
func (c *Core) excluded(f *fate, after time.Duration) bool {
	names := c.needed()
	if len(names) == 0 || c.nameOf(f.voter.Instance) != "" {
		return false
	}
	for _, name := range names {
		other := name == c.name && f.voter.Instance != c.instance
		for _, p := range c.places {
			who, ok := p.seenSince(max(after, f.known), c.now)
			other = other || ok && who.Name == name && who.Instance != f.voter.Instance
		}
		if !other {
			return false
		}
	}
	return true
}

// needed returns the founders that a new group needs: those that this instance was told of, and
// those of the group that it has been in.
func (c *Core) needed() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.settings.Founders, c.rulesOf.Founders))))
}

// heirs returns the settings of the next life: it never asks for less than the founders of the
// group that it has been in, or it might found alone beside them.
func (c *Core) heirs() Settings {
	s := c.settings
	if len(c.rulesOf.Founders) > 0 && !s.Solo && c.phase != Newborn {
		if s.Founders = c.needed(); len(s.Founders) > 0 {
			s.Replicas = 0
		}
	}
	return s
}

// distinct reports whether those who have answered questions put after that time have all lived at
// once. Whoever was met last before another life was met for the first time may be what that was
// before its restart, and would count twice.
func (c *Core) distinct(after time.Duration) bool {
	newest, oldest := time.Duration(0), c.now
	for _, p := range c.places {
		if _, ok := p.seenSince(after, c.now); ok {
			newest, oldest = max(newest, p.last.first), min(oldest, p.last.asked)
		}
	}
	return newest <= oldest
}

// prospects says how the group stands: whether it can elect, and who is over or silent.
func (c *Core) prospects() string {
	var alive, over, silent []string
	voters := 0
	for _, v := range c.newest() {
		if v.Learner {
			continue
		}
		voters++
		name := c.nameOf(v.Instance)
		if name == "" {
			name = v.Addr
		} else {
			name = nameOf(name, v.Addr)
		}
		switch {
		case c.running(v, 0):
			alive = append(alive, name)
		case c.over(v, 0):
			over = append(over, name)
		default:
			silent = append(silent, name)
		}
	}
	text := strconv.Itoa(len(alive)) + " of " + strconv.Itoa(voters) + " replicas answer"
	if len(over) > 0 {
		text += ", " + some(over) + " no longer " + plural(len(over), "exists", "exist")
	}
	if len(silent) > 0 {
		text += "; of its voters, " + some(silent) + " cannot be reached"
	}
	switch lost := c.now - c.since; {
	case c.dead(0):
		if missing := c.unreached(c.since); missing != "" {
			return text + "; a new group is founded once all instances are in reach, and " + missing
		}
		return text + "; its majority is over, and a new group is founded once the locks have ended"
	case 2*len(alive) <= voters:
		return text + "; it goes on with its locks when a majority is in reach"
	case lost > electedWithin:
		return text + ", and none is elected since " + clockText(c.sinceWall) + ": see to the network between them"
	case len(silent) > 0:
		return text + "; the others elect a leader"
	}
	return text + " and elect a leader"
}

// plural chooses the form of a word.
func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
