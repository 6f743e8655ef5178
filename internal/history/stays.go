package history

import (
	"cmp"
	"math"
	"slices"

	"github.com/mortise-lock/mortise/lockfsm"
)

// This file judges stays. A stay is a grant with reserved tokens, see lockfsm. A pass is a grant of
// one reserved token to one caller. The session of the stay grants its passes itself, so the log
// does not show them. Judge knows a pass only from the calls that returned its token.

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
func (j *judge) told(e *Event) *grant {
	token := e.Token
	if i, known := j.byToken[uint64(token)]; known {
		g := &j.grants[i]
		if e.Outcome == Granted && j.events[g.event].Last == token {
			return j.pass(g, token)
		}
		return g
	}
	n, _ := slices.BinarySearchFunc(j.ordered, token,
		func(i int32, token lockfsm.Token) int { return cmp.Compare(j.granted(i).Token, token) })
	if n == 0 || j.granted(j.ordered[n-1]).Last < token {
		return nil
	}
	return j.pass(&j.grants[j.ordered[n-1]], token)
}

// pass returns the pass with a token of the stay g.
func (j *judge) pass(g *grant, token lockfsm.Token) *grant {
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
// the log, and then follows only the passes. A pass of a shared stay may begin before the earlier
// ones have ended. At the end of the stay, stayEnds raises the point of the log to the end of all
// passes.
func (w *sweeper) passes(g *grant) error {
	at, over := *w, *w
	for i := range g.stay.passes {
		p := &g.stay.passes[i]
		if c := p.owner; c != nil {
			at.notBefore(c.begun, c.called, false)
			if err := at.notAfter(c.returned, c.ret, p.event); err != nil {
				return err
			}
		}
		if err := at.notAfter(p.seenAt, p.seenBy, p.event); err != nil {
			return err
		}
		end, err := at.passEnds(p)
		if err != nil {
			return err
		}
		if over.notBefore(end.point, end.because, end.belief); w.events[g.event].alone() {
			at = end
		}
	}
	g.stay.point, g.stay.because, g.stay.belief = over.point, over.because, over.belief
	return nil
}

// passEnds returns a copy of w whose point in time is the earliest possible end of a pass.
func (w sweeper) passEnds(p *pass) (sweeper, error) {
	w.notBefore(p.heldBehind, p.heldBy, false)
	c := p.owner
	if c == nil {
		return w, nil
	}
	until, because := c.believed()
	w.notBefore(until, because, true)
	if c.unlocked >= 0 && w.events[c.unlocked].Err == "" {
		return w, w.notAfter(c.was, c.unlocked, p.event)
	}
	return w, nil
}

func (w *sweeper) stayEnds(g *grant) {
	if s := g.stay; s != nil {
		w.notBefore(s.point, s.because, s.belief)
	}
}

// afterStay judges what is left of a stay. The state may keep a stay for as long as its session
// lives. A pass has ended when the stay has ended. If the stay is not shared, it has also ended
// when the next pass was returned.
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
		if p.owner.returned < ended && j.events[g.event].alone() {
			ended, end = p.owner.returned, p.owner.ret
		}
	}
	return nil
}
