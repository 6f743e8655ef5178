package check

import "time"

// Notices judges that a holder that asked for a notice is told when another request waits for its
// lock. The time depends on how long there is no leader. But the notice takes the same way as the
// acknowledgements of the holder's lease, and precedes those of any leader that has the waiter in
// its state. So once a renewal is acknowledged that was sent after the waiter was committed, the
// holder must have been told: within a third of a lease in a healthy group. The zero value is ready
// for use.
type Notices struct {
	rule
	wanted map[Caller]time.Duration
}

// Wanted records that a request which does not fit beside the holder who waits for its lock. Only
// the first call counts.
func (n *Notices) Wanted(who Caller, at time.Duration) {
	if _, known := n.wanted[who]; known {
		return
	}
	if n.wanted == nil {
		n.wanted = map[Caller]time.Duration{}
	}
	n.wanted[who] = at
}

// Over records that the holder who was told, or no longer holds.
func (n *Notices) Over(who Caller) { delete(n.wanted, who) }

// Renewed judges that a holder's lease was extended by a renewal sent at that time, after
// everything that came with the acknowledgement was processed.
func (n *Notices) Renewed(who Caller, sent time.Duration) error {
	if since, known := n.wanted[who]; known && sent > since && n.err == nil {
		return n.broken("notices: a request waits since %v for the lock of %v, which was not told, "+
			"although its renewal of %v is acknowledged", since, who, sent)
	}
	return n.err
}
