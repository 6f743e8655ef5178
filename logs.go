package mortise

import (
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session"
)

// seldomEvery is the time between two lines about a condition that repeats.
const seldomEvery = time.Minute

// seldom says the same no more than once a minute. The zero value has said nothing. It is safe for concurrent use.
type seldom struct{ last atomic.Int64 } // a clock.Time; 0: never

func (s *seldom) warn(n *Node, text string, args ...any) {
	now, last := n.env.clock.Now(), s.last.Load()
	if last != 0 && now.Sub(clock.Time(last)) < seldomEvery || !s.last.CompareAndSwap(last, int64(now)) {
		return
	}
	n.logger.Warn(text, args...)
}

// logLease says when all locks of this instance were lost, and when it can have locks again. The session's client calls it. An end that somebody
// wanted, and a restart in place, have lines of their own, or need none.
func (n *Node) logLease(before, after *session.ClientStatus) {
	lost := before.Lease != session.Lost && after.Lease == session.Lost
	switch {
	case lost && after.Session == before.Session:
		n.leaseLost = true
		n.logger.Warn("the lease ran out, since no leader has answered: the locks of this instance are lost", "ttl", before.TTL, "locks", before.Held)
	case before.Lease != session.Lost && after.Session != before.Session && after.Ended == session.SessionExpired:
		n.leaseLost = true
		n.logger.Warn("the group has ended the session of this instance: its locks are lost", "session", uint64(before.Session), "locks", before.Held)
	case n.leaseLost && after.Lease == session.Safe:
		n.leaseLost = false
		n.logger.Info("this instance has a lease again, and can have locks", "session", uint64(after.Session))
	}
}
