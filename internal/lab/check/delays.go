package check

import (
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Delays checks the holds with a delay in one group. If the session of such a hold expires, the
// hold must not end before the delay has passed. The delay counts from the time when the first
// replica applies the expiry. A new leader counts the whole delay again. Drift is the largest
// drift of a clock, because a leader's clock may run fast.
type Delays struct {
	Drift float64

	rule
	expired map[lockfsm.SessionID]time.Duration
}

// Expired records when the first replica applies the expiry of a session. Only the first call for a
// session counts.
func (d *Delays) Expired(session lockfsm.SessionID, at time.Duration) {
	if _, known := d.expired[session]; known {
		return
	}
	if d.expired == nil {
		d.expired = map[lockfsm.SessionID]time.Duration{}
	}
	d.expired[session] = at
}

// Ended checks a hold with this delay that ended because its session has expired. Expired must
// already have been called for the session.
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
