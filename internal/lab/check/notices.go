package check

import "time"

// Notices checks the notices to holders. If a holder has asked for notices, it must be notified
// when another request waits for its lock. The notice must arrive before the acknowledgement of a
// renewal that the holder sent after the waiter was committed.
type Notices struct {
	rule
	wanted map[Caller]time.Duration
}

// Wanted records that a request waits for the lock of a holder and may not hold the lock together
// with it. Only the first call for a holder counts.
func (n *Notices) Wanted(who Caller, at time.Duration) {
	if _, known := n.wanted[who]; known {
		return
	}
	if n.wanted == nil {
		n.wanted = map[Caller]time.Duration{}
	}
	n.wanted[who] = at
}

// Over must be called when a holder has been notified or no longer holds the lock.
func (n *Notices) Over(who Caller) { delete(n.wanted, who) }

// Renewed checks a renewal that was acknowledged. The parameter sent is the time at which the
// holder sent it. Renewed must be called after everything that arrived with the acknowledgement has
// been processed.
func (n *Notices) Renewed(who Caller, sent time.Duration) error {
	if since, known := n.wanted[who]; known && sent > since && n.err == nil {
		return n.broken("notices: a request waits since %v for the lock of %v, which was not told, "+
			"although its renewal of %v is acknowledged", since, who, sent)
	}
	return n.err
}
