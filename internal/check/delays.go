package check

import (
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Delays judges the lock-delay for one group: a hold that was asked for with a delay does not end
// by the expiry of its session before the delay is over, counted from the moment at which anybody
// could know of the expiry. A leader counts it on a clock of his own, which may run fast by Drift,
// and a new one counts anew: that makes it longer, never shorter. That nobody else is granted the
// key meanwhile is [FIFO]'s and [Beliefs]' to judge; that the delay ends, [Left]'s and [Served]'s.
// Make one with the largest drift of a clock.
type Delays struct {
	Drift float64

	rule
	expired map[lockfsm.SessionID]time.Duration
}

// Expired is told each session whose expiry is committed, when the first replica applies it. What
// is told of a session again counts for nothing.
func (d *Delays) Expired(session lockfsm.SessionID, at time.Duration) {
	if _, known := d.expired[session]; known {
		return
	}
	if d.expired == nil {
		d.expired = map[lockfsm.SessionID]time.Duration{}
	}
	d.expired[session] = at
}

// Ended is told each hold of that delay that an expiry of its session has ended, after Expired.
func (d *Delays) Ended(session lockfsm.SessionID, key string, token lockfsm.Token, delay, at time.Duration) error {
	if d.err != nil {
		return d.err
	}
	since, known := d.expired[session]
	if lasted := at - since; !known || lasted < time.Duration(float64(delay)/(1+d.Drift)) {
		return d.broken("delays: %q with token %d is free %v after session %d has expired, and it was locked with a delay of %v", key, token, lasted, session, delay)
	}
	return nil
}
