package check

import (
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Delays judges the lock delay for one group. A hold with a delay does not end by the expiry of its
// session before the delay is over, counted from the first moment at which an instance can learn of
// the expiry. A leader's clock may run fast by Drift, and a new leader counts anew, which makes the
// delay longer, never shorter. [FIFO] and [Beliefs] judge that the key is not granted meanwhile;
// [Left] and [Served] judge that the delay ends. Make one with the largest drift of a clock.
type Delays struct {
	Drift float64

	rule
	expired map[lockfsm.SessionID]time.Duration
}

// Expired records each session whose expiry is committed, when the first replica applies it. Only
// the first report of a session counts.
func (d *Delays) Expired(session lockfsm.SessionID, at time.Duration) {
	if _, known := d.expired[session]; known {
		return
	}
	if d.expired == nil {
		d.expired = map[lockfsm.SessionID]time.Duration{}
	}
	d.expired[session] = at
}

// Ended judges a hold with that delay that an expiry of its session has ended, after Expired.
func (d *Delays) Ended(session lockfsm.SessionID, key string, token lockfsm.Token, delay, at time.Duration) error {
	if d.err != nil {
		return d.err
	}
	since, known := d.expired[session]
	if lasted := at - since; !known || lasted < time.Duration(float64(delay)/(1+d.Drift)) {
		return d.broken("delays: %q with token %d is free %v after session %d has expired, "+
			"and it was locked with a delay of %v", key, token, lasted, session, delay)
	}
	return nil
}
