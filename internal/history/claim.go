package history

import (
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// claiming finds the calls that own the grants, and the calls that were told of them.
type claiming struct{ *evidence }

func (j claiming) claim() error {
	for s := range j.streams {
		calls := j.streams[s].calls
		for i := range calls {
			c := &calls[i]
			if c.ret < 0 {
				continue
			}
			e := &j.events[c.ret]
			if e.Outcome == Failed {
				continue
			}
			if e.Outcome == Held && e.Token == 0 {
				j.heldBack(c, e)
				continue
			}
			g := j.told(e)
			if g == nil {
				if err := j.phantom(c, e); err != nil {
					return err
				}
				continue
			}
			if err := j.tell(g, c, e); err != nil {
				return err
			}
		}
	}
	return j.checkSessions()
}

func (j claiming) tell(g *grant, c *call, e *Event) error {
	switch {
	case e.Outcome == Granted && !j.goesBack(g, j.events[c.called].Resumes):
		return j.broken(Phantom, []int32{c.called, c.ret, g.event},
			"call %d resumes token %d and was given token %d, which resumes token %d",
			e.Op, j.events[c.called].Resumes, e.Token, j.events[g.event].Resumes)
	case e.Outcome == Granted && j.events[c.called].Upgrades != j.events[g.event].Upgrades:
		return j.broken(Phantom, []int32{c.called, c.ret, g.event},
			"call %d upgrades token %d and was given token %d, which upgrades token %d",
			e.Op, j.events[c.called].Upgrades, e.Token, j.events[g.event].Upgrades)
	case g.set != c.set && !j.lowers(g, c) && (e.Outcome == Granted && j.events[c.called].Resumes == 0 ||
		!j.meet(g.set, c.set)):
		return j.broken(Phantom, []int32{c.called, c.ret, g.event},
			"call %d for %s was told of token %d, which is of %s", e.Op, j.sets[c.set].name, e.Token,
			j.sets[g.set].name)
	case e.Outcome == Granted && g.stay != nil:
		return j.broken(Phantom, []int32{c.called, c.ret, g.event},
			"call %d was granted %s with token %d, which is the token of a stay and of no caller", e.Op,
			j.sets[g.set].name, e.Token)
	case e.Outcome == Held:
		if c.returned < g.seenAt {
			g.seenAt, g.seenBy = c.returned, c.ret
		}
		if c.begun > g.heldBehind {
			g.heldBehind, g.heldBy = c.begun, c.called
		}
	case g.owner != nil:
		return j.broken(Tokens, []int32{g.owner.ret, c.ret, g.event}, "two callers were granted %s with token %d",
			j.sets[g.set].name, e.Token)
	default:
		g.owner = c
	}
	return nil
}

// goesBack reports whether a grant resumes the hold with the given token, directly or through a
// chain of grants. It also returns true for token zero, and if the chain begins before the
// recording.
func (j claiming) goesBack(g *grant, token lockfsm.Token) bool {
	for at := g; ; {
		resumes := j.events[at.event].Resumes
		if resumes == token || resumes == 0 {
			return resumes == token
		}
		before, known := j.byToken[uint64(resumes)]
		if !known {
			return true // that grant is older than the recording
		}
		at = &j.grants[before]
	}
}

// heldBack judges a try that failed because of a request that waits for several keys. The history
// must have a request for several keys with one of the keys of the try.
func (j claiming) heldBack(c *call, e *Event) {
	if !slices.ContainsFunc(j.sets[c.set].keys, func(key int32) bool { return j.crowded[key] }) {
		j.unsure("call %d of %s was told that a waiter for several locks comes first for %s, "+
			"but there is none: is a file missing?", e.Op, e.Node, j.sets[c.set].name)
	}
}

func (j claiming) phantom(c *call, e *Event) error {
	for _, a := range j.groups {
		if uint64(a.first) < uint64(e.Token) && uint64(e.Token) <= uint64(a.covers) {
			return j.broken(Phantom, []int32{c.called, c.ret},
				"call %d was told that %s is held with token %d, which the state never granted", e.Op,
				j.sets[c.set].name, e.Token)
		}
	}
	j.unsure("no voter's account reaches token %d, which %s was told of: is a file missing?", e.Token, e.Node)
	return nil
}

// checkSessions finds the stream of each session: the stream of the calls that returned its tokens.
// It verifies that all passes of the session are of this stream.
func (j claiming) checkSessions() error {
	j.sessions = map[lockfsm.SessionID]int32{}
	for i := range j.grants {
		session := j.granted(int32(i)).Session
		if _, known := j.sessions[session]; !known && j.grants[i].owner != nil {
			j.sessions[session] = j.grants[i].owner.ret
		}
	}
	for i := range j.grants {
		g := &j.grants[i]
		if g.stay == nil {
			continue
		}
		session := j.events[g.event].Session
		for _, p := range g.stay.passes {
			if p.owner == nil {
				continue
			}
			ret := p.owner.ret
			before, known := j.sessions[session]
			if !known {
				j.sessions[session] = ret
			} else if j.events[before].Stream != j.events[ret].Stream {
				return j.broken(Phantom, []int32{g.event, before, ret},
					"%s was granted with token %d out of a stay of session %d, which is of another instance",
					j.sets[g.set].name, p.token, session)
			}
		}
	}
	return nil
}

// lowers reports whether g can be the grant of the call c although g is shared and c asked for an
// exclusive lock. The voters know g only from a state after its downgrade.
func (j claiming) lowers(g *grant, c *call) bool {
	e, asked := &j.events[g.event], &j.events[c.called]
	return e.Seq == 0 && c.downgrade >= 0 && asked.sheds() && e.reads() && e.Key == asked.Key &&
		slices.Equal(e.Keys, asked.Keys)
}
