package history

import (
	"cmp"
	"math"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file judges stays. A stay is a grant with reserved tokens, see lockfsm. A pass is a grant of
// one reserved token to one caller. The session of the stay grants its passes itself, so the log
// does not show them. Package judge knows a pass only from the calls that returned its token.

type stay struct {
	passes []pass // in the order of their tokens

	// The earliest possible time at which all passes are over, and its proof, as in sweeper.
	point   int64
	because int32
	belief  bool
}

// pass embeds a grant whose field event is the grant of the stay.
type pass struct {
	grant
	token lockfsm.Token
}

func (j *judge) listStays() error {
	stays := false
	for i := range j.grants {
		if g := &j.grants[i]; j.events[g.event].Last != 0 {
			g.stay, stays = &stay{because: -1}, true
		}
	}
	if !stays {
		return nil
	}
	j.ordered = make([]int32, len(j.grants))
	for i := range j.ordered {
		j.ordered[i] = int32(i)
	}
	slices.SortFunc(j.ordered, func(a, b int32) int { return cmp.Compare(j.granted(a).Token, j.granted(b).Token) })
	for n, i := range j.ordered[1:] {
		before, e := j.grants[j.ordered[n]].event, j.granted(i)
		if e.Token <= j.events[before].Last {
			return j.broken(Tokens, []int32{before, j.grants[i].event}, "token %d is given, and a stay has reserved it",
				e.Token)
		}
	}
	return nil
}

func (j *judge) granted(i int32) *Event { return &j.events[j.grants[i].event] }

// told returns the grant or the pass with a token that a call has returned. It returns nil if there
// is neither a grant with this token nor a stay that has reserved it.
func (j *judge) told(token lockfsm.Token) *grant {
	if i, known := j.byToken[uint64(token)]; known {
		return &j.grants[i]
	}
	n, _ := slices.BinarySearchFunc(j.ordered, token,
		func(i int32, token lockfsm.Token) int { return cmp.Compare(j.granted(i).Token, token) })
	if n == 0 || j.granted(j.ordered[n-1]).Last < token {
		return nil
	}
	g := &j.grants[j.ordered[n-1]]
	s := g.stay
	n, known := slices.BinarySearchFunc(s.passes, token,
		func(p pass, token lockfsm.Token) int { return cmp.Compare(p.token, token) })
	if !known {
		s.passes = slices.Insert(s.passes, n, pass{newGrant(g.set, g.event, g.group), token})
	}
	return &s.passes[n].grant
}

// checkSessions finds the stream of each session: the stream of the calls that returned its tokens.
// It verifies that all passes of the session are of this stream.
func (j *judge) checkSessions() error {
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

// passes replays the passes of a stay when the stay is granted. Its point in time begins at that of
// the log, and then follows only the passes. At the end of the stay, stayEnds raises the point of
// the log to it.
func (w *sweeper) passes(g *grant) error {
	at := *w
	for i := range g.stay.passes {
		p := &g.stay.passes[i]
		c := p.owner
		if c != nil {
			at.notBefore(c.begun, c.called, false)
			if err := at.notAfter(c.returned, c.ret, p.event); err != nil {
				return err
			}
		}
		if err := at.notAfter(p.seenAt, p.seenBy, p.event); err != nil {
			return err
		}
		at.notBefore(p.heldBehind, p.heldBy, false)
		if c == nil {
			continue
		}
		until, because := c.believed()
		at.notBefore(until, because, true)
		if c.unlocked >= 0 && w.events[c.unlocked].Err == "" {
			if err := at.notAfter(c.was, c.unlocked, p.event); err != nil {
				return err
			}
		}
	}
	g.stay.point, g.stay.because, g.stay.belief = at.point, at.because, at.belief
	return nil
}

func (w *sweeper) stayEnds(g *grant) {
	if s := g.stay; s != nil {
		w.notBefore(s.point, s.because, s.belief)
	}
}

// afterStay judges what is left of a stay. The state may keep a stay for as long as its session
// lives. A pass has ended when the next pass of the stay was returned, and when the stay has ended.
func (j *judge) afterStay(g *grant) error {
	if g.ended == math.MaxInt64 && j.settled && int(g.group) == len(j.groups)-1 {
		return j.broken(Kept, []int32{g.event}, "all locks have ended, but the state keeps the stay of %s with token %d",
			j.sets[g.set].name, j.events[g.event].Token)
	}
	ended, end := g.ended, g.end
	for i := len(g.stay.passes) - 1; i >= 0; i-- {
		p := &g.stay.passes[i]
		if p.owner == nil {
			continue
		}
		if p.ended, p.end = ended, end; ended != math.MaxInt64 {
			if err := j.zombie(&p.grant); err != nil {
				return err
			}
		}
		if p.owner.returned < ended {
			ended, end = p.owner.returned, p.owner.ret
		}
	}
	return nil
}
