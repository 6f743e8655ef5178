package instance

import (
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

const seldomEvery = time.Minute

// seldom logs a warning at most once per seldomEvery. The zero value is ready to use. It is safe
// for concurrent use.
type seldom struct{ last atomic.Int64 } // last is a clock.Time; zero means never

func (s *seldom) warn(n *Instance, text string, args ...any) {
	now, last := n.env.clock.Now(), s.last.Load()
	if last != 0 && now.Sub(clock.Time(last)) < seldomEvery || !s.last.CompareAndSwap(last, int64(now)) {
		return
	}
	n.logger.Warn(text, args...)
}

// log writes a line when all locks of the session are lost, and when locks can be granted again.
func (w *observer) log(before, after *client.Status) {
	say := w.node.logger
	if w.own {
		say = say.With("session_of", "NewSession")
	}
	switch {
	case before.Lease != client.Lost && after.Lease == client.Lost && after.Session == before.Session:
		w.lost = true
		if before.Held == 0 {
			say.Info("a lease ran out, since no leader has answered: this session held no lock", "session",
				uint64(before.Session), "ttl", before.TTL)
			return
		}
		say.Warn("a lease ran out, since no leader has answered: the locks of this session are lost", "session",
			uint64(before.Session), "ttl", before.TTL, "locks", before.Held)
	case before.Lease != client.Lost && after.Session != before.Session && after.Ended == client.SessionExpired:
		w.lost = true
		if before.Held == 0 {
			say.Info("the group has ended a session of this instance, which held no lock", "session",
				uint64(before.Session))
			return
		}
		say.Warn("the group has ended a session of this instance: its locks are lost", "session",
			uint64(before.Session), "locks", before.Held)
	case w.lost && after.Lease == client.Safe:
		w.lost = false
		say.Info("the session has a lease again, so locks can be granted", "session", uint64(after.Session))
	}
}
