package founding

import (
	"slices"
	"time"
)

// An inquest decides whether the group of a member is dead (rule 6).
type inquest struct {
	*sight
	fates
	replica
}

// verdict returns why a member gives its group up, or "". The argument other says that another
// group has a leader, and reached that all instances that a new group needs have answered.
func (q *inquest) verdict(after time.Duration, other, reached bool) string {
	reason := "group " + groupName(q.group) + " has had no leader for at least " +
		(q.now - q.since).Round(time.Second).String()
	switch {
	case other && q.abandoned(after):
		return reason + ", no majority of its voters answers, and another group that has a leader is in reach"
	case reached && q.distinct(after) && q.dead(after):
		return reason + ", its majority is gone, and all instances are in reach, so a new group can be founded"
	}
	return ""
}

func (q *inquest) dead(after time.Duration) bool {
	return !slices.ContainsFunc(q.configurations(after), func(g Configuration) bool {
		return !q.unapplied(g) && !q.stuck(g) && g.majority(func(v Voter) bool { return !q.over(v, after) })
	})
}

// stuck reports whether no voter of a configuration can ever win an election, although a majority
// runs. A voter refuses a candidate whose log is behind its own, and ignores a candidate that its
// applied configuration does not name. stuck only uses answers given after all messages of a dead
// leader have arrived.
func (q *inquest) stuck(g Configuration) bool {
	since := q.whole + hearsayOver
	if q.whole == 0 || q.now <= since {
		return false
	}
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner || q.over(v, since) {
			return false
		}
		applied, log := q.stands(v, since)
		if log.Term == 0 || applied.At == 0 {
			return true // v is silent, or has not reported its log
		}
		return applied.At == g.At && g.majority(func(w Voter) bool {
			knows, other := q.stands(w, since)
			return !q.over(w, since) && !other.ahead(log) && (knows.At == 0 || knows.names(v.Raft))
		})
	})
}

// stands returns the configuration that voter v has applied and the position of its log, from its
// latest answer. Both are zero without a recent answer.
func (q *inquest) stands(v Voter, after time.Duration) (applied Configuration, log Log) {
	if v.Instance == q.instance && q.runs() == v.Raft {
		return q.applied, q.ownLog()
	}
	if who := q.answering(v, after); who != nil && who.Standing != nil && who.Group == q.group && !who.Leader {
		return who.Standing.Applied, who.Standing.Log
	}
	return Configuration{}, Log{}
}

// refuted reports whether no voter of configuration g has applied g: each voter has ended, or runs
// and reports another applied configuration. A voter that is silent or does not report its applied
// configuration may have applied g.
func (q *inquest) refuted(g Configuration, after time.Duration) bool {
	return !slices.ContainsFunc(g.Voters, func(v Voter) bool {
		if v.Learner {
			return false
		}
		if !q.running(v, after) {
			return !q.over(v, after)
		}
		applied := q.applied.At
		if v.Instance != q.instance {
			who := q.answering(v, after)
			if who.Standing == nil || who.Group != q.group {
				return true
			}
			applied = who.Standing.Applied.At
		}
		return applied == 0 || applied == g.At
	})
}

// unapplied reports whether a configuration has been refuted for so long that no message of its
// leader can still arrive.
func (q *inquest) unapplied(g Configuration) bool {
	return !g.told && g.At == q.doubts.at && q.whole > 0 && q.now-max(q.whole, q.doubts.since) > hearsayOver
}

func (q *inquest) abandoned(after time.Duration) bool {
	if q.runs() != 0 {
		return q.dead(after)
	}
	return !slices.ContainsFunc(q.configurations(after), func(g Configuration) bool {
		return g.majority(func(v Voter) bool { return q.running(v, after) || !q.over(v, after) && !q.triedSince(v) })
	})
}

func (q *inquest) triedSince(v Voter) bool {
	at, found := find(q.places, v.Addr)
	return found && q.places[at].ended > q.whole
}

func (q *inquest) configurations(after time.Duration) []Configuration {
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
	add(Configuration{At: q.at, Voters: q.newest(), told: q.at <= 1})
	if q.runs() != 0 || q.applied.At == q.at {
		add(q.applied)
	}
	for i := 0; i < len(list); i++ {
		for _, v := range list[i].Voters {
			if who := q.answering(v, after); who != nil && who.Standing != nil && who.Group == q.group {
				add(who.Standing.Applied)
			}
		}
	}
	for _, g := range q.later(after) {
		add(g)
	}
	return list
}

func (q *inquest) running(v Voter, after time.Duration) bool {
	if v.Instance == q.instance {
		return q.runs() == v.Raft
	}
	return q.answering(v, after) != nil
}

// over reports whether a voter can never vote again, or is assumed never to vote again.
func (q *inquest) over(v Voter, after time.Duration) bool {
	switch f := q.fates.of(v.Raft); {
	case q.running(v, after):
		return false
	case v.Instance == q.instance:
		return true
	case f == nil:
		return false
	case len(q.needed()) == 0 && q.whole > 0 && q.now-max(q.whole, f.heard, f.known) > silentOver:
		return true
	// the incarnation has ended, or another incarnation has taken its address or name
	default:
		return f.over || v.Addr == q.addr && !f.durable || q.replaces(q.name, f.voter.Instance) || q.excluded(f, after)
	}
}

// excluded reports whether a replica of unknown name has ended. Only founders get a vote, so the
// replica has ended once other incarnations have answered under the names of all founders.
func (q *inquest) excluded(f *fate, after time.Duration) bool {
	names := q.needed()
	if len(names) == 0 || q.nameOf(f.voter.Instance) != "" {
		return false
	}
	for _, name := range names {
		other := name == q.name && f.voter.Instance != q.instance
		for _, p := range q.places {
			who, ok := p.seenSince(max(after, f.known), q.now)
			other = other || ok && who.Name == name && who.Instance != f.voter.Instance
		}
		if !other {
			return false
		}
	}
	return true
}
