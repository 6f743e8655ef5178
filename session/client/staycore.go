package client

import "github.com/mortise-lock/mortise/internal/clock"

// This file connects Stays with a Core. The shell decides when each function is called.

// Stay passes a command of stays to the core.
func (c *Core) Stay(now clock.Time, command *StayCommand) {
	switch r := command.Request; command.Kind {
	case StayAcquire:
		c.Acquire(now, r)
	case StayRelease:
		c.Release(now, r)
	case StayCancel:
		c.Cancel(now, r)
	case StayInUse:
		c.InUse(now, r, command.Place, command.Token)
	}
}

// Outcome passes an outcome of the core to the stays. The request must be one of theirs.
func (s *Stays) Outcome(w Window, o *Outcome) {
	switch o.Kind {
	case OutcomeGranted:
		s.Granted(w, o.Request, o.Token, o.Last)
	case OutcomeFailed:
		s.Failed(o.Request, o.Err)
	case OutcomeLost:
		s.Lost(o.Request, o.Err, o.Why)
	case OutcomeWaits:
		s.Behind(o.Request, o.Behind)
	case OutcomeWanted:
		s.Recalled(w, o.Request)
	case OutcomeAsked:
		s.Asked(w, o.Request, o.Place)
	}
}

// Before gives back the free stays of the keys of r before r is sent to the group. It also notes
// that r is made under a pass.
func (s *Stays) Before(r *Request) {
	if len(s.stays) == 0 {
		return
	}
	s.Yield(r.Key)
	if t := r.Terms; t != nil {
		for _, key := range t.Keys {
			s.Yield(key)
		}
		if t.Under != nil {
			s.Nested(t.Under)
		}
	}
}
