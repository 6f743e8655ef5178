package check

import "time"

// Notices judges that a holder who wants to know is told when somebody waits for him. How soon that
// is depends on how long a leader is away; what does not depend on it: the word comes on the same
// way as the acknowledgements of his lease, and before those that a leader gives who knows of the
// waiter. So a holder whose lease was prolonged by a renewal that he sent after it was committed
// that somebody waits has been told. A holder that lives, in a group that is well, is so told
// within a third of a lease; one that is cut off loses the lock. The zero value is ready for use.
type Notices struct {
	rule
	wanted map[Who]time.Duration
}

// Wanted is told that by now the state has somebody who waits for what who holds, and does not fit
// beside him. It counts from the first time on.
func (n *Notices) Wanted(who Who, at time.Duration) {
	if _, known := n.wanted[who]; known {
		return
	}
	if n.wanted == nil {
		n.wanted = map[Who]time.Duration{}
	}
	n.wanted[who] = at
}

// Over is told that who was told, or does not hold any more.
func (n *Notices) Over(who Who) { delete(n.wanted, who) }

// Renewed is told that a holder's lease was prolonged by a renewal that was sent at that time, when
// all that came with the acknowledgement is taken in.
func (n *Notices) Renewed(who Who, sent time.Duration) error {
	if since, known := n.wanted[who]; known && sent > since && n.err == nil {
		return n.broken("notices: somebody waits since %v for what %v holds, and he was not told, though a renewal that he sent at %v is acknowledged", since, who, sent)
	}
	return n.err
}
