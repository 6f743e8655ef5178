package client

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/stay"
)

// This file connects a stay.Set with a Core. A request of the set is the Caller of a request of the
// core. The shell decides when each method is called.

// Stay passes a command of the stays to the core.
func (c *Core) Stay(now clock.Time, command *stay.Command) {
	q := command.Request
	if command.Kind == stay.Acquire {
		r := &Request{Key: q.Key, Sticky: true, Caller: q}
		if q.Shared {
			r.Terms = &Terms{Permits: 1}
		}
		q.Of = r
	}
	switch r := q.Of.(*Request); command.Kind {
	case stay.Acquire:
		c.Acquire(now, r)
	case stay.Release:
		c.Release(now, r)
	case stay.Cancel:
		c.Cancel(now, r)
	case stay.InUse:
		c.begin(now)
		if r.stage == stageHeld && c.linked() { // otherwise the leader asks again after the next Attach
			c.answers = append(c.answers, stayAnswer{request: r, entry: r.entry, place: command.Place, token: command.Token})
		}
	case stay.Lapse:
		c.begin(now)
		if r.stage == stageHeld && len(command.Why) > 0 && len(c.answers) < maxLapses {
			c.answers = append(c.answers, stayAnswer{request: r, entry: r.entry, token: command.Token, why: command.Why})
		}
	}
}

// stay returns the request of a stay that r is, or nil.
func (r *Request) stay() *stay.Request {
	q, _ := r.Caller.(*stay.Request)
	return q
}

// Tell passes an outcome to the stays. The request must be one of theirs.
func (o *Outcome) Tell(s *stay.Set, w stay.Window) {
	switch q := o.Request.stay(); o.Kind {
	case OutcomeGranted:
		s.Granted(w, q, o.Token, o.Last)
	case OutcomeFailed:
		s.Failed(q, o.Err)
	case OutcomeLost:
		s.Lost(q, o.Err, o.Why)
	case OutcomeWaits:
		s.Behind(q, o.Behind)
	case OutcomeWanted:
		s.Recalled(w, q)
	case OutcomeYield:
		s.YieldWhenFree(w, q)
	case OutcomeAsked:
		s.Asked(w, q, o.Place)
	}
}

// Before gives back the free stays of the keys of r before r is sent to the group. It also reports
// the stay under whose pass r is made.
func (r *Request) Before(s *stay.Set) { r.before(s.Yield, s.Nested) }

// before calls yields for each key of r, and nested for each stay under whose pass r is made.
func (r *Request) before(yields func(key string), nested func(*stay.Request)) {
	yields(r.Key)
	t := r.Terms
	if t == nil {
		return
	}
	for _, key := range t.Keys {
		yields(key)
	}
	for _, owner := range [...]*Request{t.Under, t.Inner} {
		if owner != nil && owner.stay() != nil {
			nested(owner.stay())
		}
	}
}
