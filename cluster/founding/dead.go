package founding

import (
	"slices"
	"strconv"
	"time"
)

// This file decides when a member without a directory gives up its group: only if the group is
// dead. The package comment defines alive, over and dead.

// member applies rules 6 and 7. It does nothing while the group has a leader, or with a directory,
// except if the group is superseded. A directory may hold the only copy of what was acknowledged to
// others, so only an operator gives up such a group.
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
		return // holders may still trust their leases
	}
	other, own := c.leaders(after)
	reached := c.unreached(after) == ""
	if own || !reached && !other {
		c.whole = 0
		return // it may only have lost its leader, or instances that a new group needs are missing
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
		c.doomed = reason + ", its majority is gone, and all instances are in reach, so a new group can be founded"
	}
}

// leaders reports whether an instance has answered lately that another group has a leader, and
// whether one has answered that this group has one. Only answers to questions after the given time
// count.
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

func (c *Core) dead(after time.Duration) bool {
	return !slices.ContainsFunc(c.configurations(after), func(g Configuration) bool {
		return !c.unapplied(g) && !c.stuck(g) && g.majority(func(v Voter) bool { return !c.over(v, after) })
	})
}

// stuck reports whether no voter of a configuration can ever win an election in it, although a
// majority of its voters runs. A voter refuses a candidate whose log is behind its own. It also
// ignores a candidate that the configuration it has applied does not name. This state arises if a
// leader that changed the voters dies before all of them know it. stuck uses only answers from the
// time when all messages of that leader must have arrived.
func (c *Core) stuck(g Configuration) bool {
	since := c.whole + hearsayOver
	if c.whole == 0 || c.now <= since {
		return false
	}
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner || c.over(v, since) {
			return false // it cannot be a candidate
		}
		applied, log := c.stands(v, since)
		if log.Term == 0 || applied.At == 0 {
			return true // it is silent, or has not reported its log
		}
		return applied.At == g.At && g.majority(func(w Voter) bool {
			knows, other := c.stands(w, since)
			return !c.over(w, since) && !other.ahead(log) && (knows.At == 0 || knows.names(v.Raft))
		})
	})
}

// stands returns the configuration that a voter has applied and how far its log goes, by its latest
// answer. Both are zero if there is no recent answer.
func (c *Core) stands(v Voter, after time.Duration) (applied Configuration, log Log) {
	if v.Instance == c.instance && c.runs() == v.Raft {
		return c.applied, c.ownLog()
	}
	if who := c.answering(v, after); who != nil && who.Standing != nil && who.Group == c.group && !who.Leader {
		return who.Standing.Applied, who.Standing.Log
	}
	return Configuration{}, Log{}
}

func (g *Configuration) names(raft uint64) bool {
	return slices.ContainsFunc(g.Voters, func(v Voter) bool { return v.Raft == raft })
}

// doubt records since when the newest known configuration has been refuted without interruption.
func (c *Core) doubt(after time.Duration) {
	switch g := (Configuration{At: c.at, Voters: c.newest()}); {
	case !c.refuted(g, after):
		c.doubts = doubts{}
	case c.doubts.at != g.At:
		c.doubts = doubts{at: g.At, since: c.now}
	}
}

// refuted reports whether no voter of a configuration has applied it: each voter is over, or runs
// and reports that it has applied another configuration. A voter that is silent or does not report
// an applied configuration may have applied this one.
func (c *Core) refuted(g Configuration, after time.Duration) bool {
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner {
			return false // it cannot be a candidate
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

// unapplied reports whether no voter has applied a configuration, and has been refuted for so long
// that no message of its leader can still arrive.
func (c *Core) unapplied(g Configuration) bool {
	return !g.told && g.At == c.doubts.at && c.whole > 0 && c.now-max(c.whole, c.doubts.since) > hearsayOver
}

// forsaken reports whether this instance leaves its group because another group has a leader. An
// instance without a replica leaves if no majority of its group's voters answers. An instance with
// a replica leaves only if its group is dead.
func (c *Core) forsaken(after time.Duration) bool {
	if c.runs() != 0 {
		return c.dead(after)
	}
	return !slices.ContainsFunc(c.configurations(after), func(g Configuration) bool {
		return g.majority(func(v Voter) bool { return c.running(v, after) || !c.over(v, after) && !c.triedSince(v) })
	})
}

// triedSince reports whether a question to the voter has ended since another group was met.
func (c *Core) triedSince(v Voter) bool {
	at, found := find(c.places, v.Addr)
	return found && c.places[at].ended > c.whole
}

// configurations returns the newest known configuration and those that live voters have applied, at
// most maxVoters.
func (c *Core) configurations(after time.Duration) []Configuration {
	var list []Configuration
	add := func(g Configuration) {
		at := slices.IndexFunc(list, func(o Configuration) bool { return o.At == g.At })
		switch {
		case at >= 0 && g.told && !list[at].told:
			list[at] = g
		case at < 0 && len(g.Voters) > 0 && len(list) < maxVoters:
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

// later returns configurations that are newer than the known one and that members of this group
// report to have applied. If this instance was cut off, all voters that it knows may have been
// replaced. Such a report can only make the instance stay in its group.
func (c *Core) later(after time.Duration) (list []Configuration) {
	for _, p := range c.places {
		who, ok := p.seenSince(after, c.now)
		if !ok || who.Phase != Member || who.Group != c.group || who.Standing == nil || who.Standing.Raft == 0 {
			continue
		}
		if g := who.Standing.Applied; g.At > c.at && len(list) < maxVoters {
			list = append(list, g)
		}
	}
	return list
}

// majority reports whether the voters for which meant returns true are a majority. A joint
// configuration needs a majority in each half.
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
			return 4*n > all // the configuration may be joint, and then a quarter of all voters may be a majority of each half
		}
		return 2*n > all
	}
	if len(g.Outgoing) == 0 {
		return half(func(Voter) bool { return true })
	}
	incoming := half(func(v Voter) bool { return slices.Contains(g.Incoming, v.Raft) })
	return incoming && half(func(v Voter) bool { return slices.Contains(g.Outgoing, v.Raft) })
}

// answering returns the latest answer of a voter's life, if its replica runs.
func (c *Core) answering(v Voter, after time.Duration) *InstanceInfo {
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

func (c *Core) running(v Voter, after time.Duration) bool {
	if v.Instance == c.instance {
		return c.runs() == v.Raft
	}
	return c.answering(v, after) != nil
}

// over reports whether a voter is known never to vote again. With Replicas this includes a voter
// that has been silent for ten minutes while all instances that a new group needs have answered.
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
	default: // its life is known to have ended, or another life, perhaps this one, has taken its place
		return f.over || v.Addr == c.addr && !f.durable || c.replaces(c.name, f) || c.excluded(f, after)
	}
}

// excluded reports whether a replica whose instance name is unknown is over. Such a replica got its
// vote while this instance was cut off. Only founders get a vote. So the replica is over if, since
// then, another life has answered under the name of each founder.
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

// needed returns the founders that a new group needs: those in the configuration of this instance
// and those of its group.
func (c *Core) needed() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.settings.Founders, c.rulesOf.Founders))))
}

// heirs returns the settings of the next life. They include the founders of the present group, so
// that the next life cannot found a second group without them.
func (c *Core) heirs() Settings {
	s := c.settings
	if len(c.rulesOf.Founders) > 0 && !s.Solo && c.phase != Newborn {
		if s.Founders = c.needed(); len(s.Founders) > 0 {
			s.Replicas = 0
		}
	}
	return s
}

// distinct reports whether all instances that answered after the given time were alive at the same
// moment. If one was last met before another was first met, both may be the same process before and
// after a restart, which would count twice.
func (c *Core) distinct(after time.Duration) bool {
	newest, oldest := time.Duration(0), c.now
	for _, p := range c.places {
		if _, ok := p.seenSince(after, c.now); ok {
			newest, oldest = max(newest, p.last.first), min(oldest, p.last.asked)
		}
	}
	return newest <= oldest
}

// prospects describes the group for people: whether it can elect a leader, and which voters are
// over or silent.
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
		return text + "; its majority is gone, and a new group is founded once the locks have ended"
	case 2*len(alive) <= voters:
		return text + "; it goes on with its locks when a majority is in reach"
	case lost > electedWithin:
		return text + ", and none is elected since " + clockText(c.sinceWall) + ": check the network between them"
	case len(silent) > 0:
		return text + "; the others elect a leader"
	}
	return text + " and elect a leader"
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
