package check

import (
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Delays judges the lock delay for one group: a hold with a delay must not end by the expiry of its
// session before the delay has passed. The delay is counted from the first moment at which an
// instance can learn of the expiry. The clock of a leader may run fast by the fraction Drift. A new
// leader starts the delay from the beginning, which only makes it longer. [FIFO] and [Beliefs]
// judge that the key is not granted during the delay; [Left] and [Served] judge that the delay
// ends. Set Drift to the largest drift of a clock.
type Delays struct {
	Drift float64

	rule
	expired map[lockfsm.SessionID]time.Duration
}

// Expired records that the expiry of a session is committed. It must be called when the first
// replica applies the expiry. Only the first report of a session counts.
func (d *Delays) Expired(session lockfsm.SessionID, at time.Duration) {
	if _, known := d.expired[session]; known {
		return
	}
	if d.expired == nil {
		d.expired = map[lockfsm.SessionID]time.Duration{}
	}
	d.expired[session] = at
}

// Ended judges the end of a hold with a delay after the expiry of its session. It must be called
// after Expired.
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
