package founding

import (
	"slices"
	"strconv"
	"time"
)

// member applies rules 6 and 7. With a directory it leaves only a group that is superseded.
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
		return // the group may have lost only its leader, or a needed instance is missing
	}
	if c.whole == 0 {
		c.whole = c.now
	}
	c.doubt(after)
	reason := "group " + groupName(c.group) + " has had no leader for at least " +
		(c.now - c.since).Round(time.Second).String()
	switch {
	case other && c.abandoned(after):
		c.doomed = reason + ", no majority of its voters answers, and another group that has a leader is in reach"
	case reached && c.distinct(after) && c.dead(after):
		c.doomed = reason + ", its majority is gone, and all instances are in reach, so a new group can be founded"
	}
}

// leaders reports whether a recent answer shows a leader of another group (other) or of this group
// (own). It uses only answers to questions that were sent after the given time.
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

// stuck reports whether no voter of a configuration can ever win an election, although a majority
// runs. A voter refuses a candidate whose log is behind its own, and ignores a candidate that its
// applied configuration does not name. stuck only uses answers given after all messages of a dead
// leader have arrived.
func (c *Core) stuck(g Configuration) bool {
	since := c.whole + hearsayOver
	if c.whole == 0 || c.now <= since {
		return false
	}
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner || c.over(v, since) {
			return false
		}
		applied, log := c.stands(v, since)
		if log.Term == 0 || applied.At == 0 {
			return true // v is silent, or has not reported its log
		}
		return applied.At == g.At && g.majority(func(w Voter) bool {
			knows, other := c.stands(w, since)
			return !c.over(w, since) && !other.ahead(log) && (knows.At == 0 || knows.names(v.Raft))
		})
	})
}

// stands returns the configuration that voter v has applied and the position of its log, from its
// latest answer. Both are zero without a recent answer.
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

func (c *Core) doubt(after time.Duration) {
	switch g := (Configuration{At: c.at, Voters: c.newest()}); {
	case !c.refuted(g, after):
		c.doubts = doubts{}
	case c.doubts.at != g.At:
		c.doubts = doubts{at: g.At, since: c.now}
	}
}

// refuted reports whether no voter of configuration g has applied g: each voter has ended, or runs
// and reports another applied configuration. A voter that is silent or does not report its applied
// configuration may have applied g.
func (c *Core) refuted(g Configuration, after time.Duration) bool {
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner {
			return false
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

// unapplied reports whether a configuration has been refuted for so long that no message of its
// leader can still arrive.
func (c *Core) unapplied(g Configuration) bool {
	return !g.told && g.At == c.doubts.at && c.whole > 0 && c.now-max(c.whole, c.doubts.since) > hearsayOver
}

func (c *Core) abandoned(after time.Duration) bool {
	if c.runs() != 0 {
		return c.dead(after)
	}
	return !slices.ContainsFunc(c.configurations(after), func(g Configuration) bool {
		return g.majority(func(v Voter) bool { return c.running(v, after) || !c.over(v, after) && !c.triedSince(v) })
	})
}

func (c *Core) triedSince(v Voter) bool {
	at, found := find(c.places, v.Addr)
	return found && c.places[at].ended > c.whole
}

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
		add(c.applied)
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

// The method later lists the configurations that members of this group report as applied, if they
// are newer than the known one. A false report can only make this instance stay in its group.
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

// majority reports whether the voters for which meant returns true are a majority. In a joint
// configuration they must be a majority of each half.
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
			// g may be joint with unknown halves; a majority of each half is over a quarter of all
			return 4*n > all
		}
		return 2*n > all
	}
	if len(g.Outgoing) == 0 {
		return half(func(Voter) bool { return true })
	}
	incoming := half(func(v Voter) bool { return slices.Contains(g.Incoming, v.Raft) })
	return incoming && half(func(v Voter) bool { return slices.Contains(g.Outgoing, v.Raft) })
}

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

// over reports whether a voter can never vote again, or is assumed never to vote again.
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
	// the incarnation has ended, or another incarnation has taken its address or name
	default:
		return f.over || v.Addr == c.addr && !f.durable || c.replaces(c.name, f) || c.excluded(f, after)
	}
}

// excluded reports whether a replica of unknown name has ended. Only founders get a vote, so the
// replica has ended once other incarnations have answered under the names of all founders.
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

func (c *Core) needed() []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(c.settings.Founders, c.rulesOf.Founders))))
}

// nextSettings returns the settings of the next incarnation. They include the founders of the
// present group; otherwise the next incarnation might found a group alone.
func (c *Core) nextSettings() Settings {
	s := c.settings
	if len(c.rulesOf.Founders) > 0 && !s.Solo && c.phase != Newborn {
		if s.Founders = c.needed(); len(s.Founders) > 0 {
			s.Replicas = 0
		}
	}
	return s
}

// distinct reports whether all instances that answered after the given time were alive
// simultaneously. Otherwise two of them may be the same process before and after a restart.
func (c *Core) distinct(after time.Duration) bool {
	newest, oldest := time.Duration(0), c.now
	for _, p := range c.places {
		if _, ok := p.seenSince(after, c.now); ok {
			newest, oldest = max(newest, p.last.first), min(oldest, p.last.asked)
		}
	}
	return newest <= oldest
}

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
			return text + "; a new group is founded once all instances are in reach, but " + missing
		}
		return text + "; its majority is gone, and a new group is founded once the locks have ended"
	case 2*len(alive) <= voters:
		return text + "; it goes on with its locks when a majority is in reach"
	case lost > electedWithin:
		return text + "; no leader has been elected since " + clockText(c.sinceWall) + c.orEarlier() +
			": check the network between them"
	case len(silent) > 0:
		return text + "; the others elect a leader"
	}
	return text + " and elect a leader"
}
