package instance

import (
	"context"
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
func (w *observer) log(now clock.Time, before, after *client.Status) {
	w.logGrace(now, after)
	line := w.losses.note(now, before, after)
	if line == nil {
		return
	}
	say := w.node.logger
	if w.own {
		say = say.With("session_of", "NewSession")
	}
	say.Log(context.Background(), line.level, line.text, line.args...)
}

// logGrace writes a line when the grace of a new group is known.
func (w *observer) logGrace(now clock.Time, s *client.Status) {
	if w.own || s.GraceUntil == 0 || s.GraceUntil.Sub(w.grace) <= time.Second {
		return
	}
	w.grace = s.GraceUntil
	left := max(s.GraceUntil.Sub(now), 0)
	w.node.logger.Info("the group is new and in its grace: it grants locks from the given time on, because until then a "+
		"holder of an earlier group may rely on its lock", "from", w.node.env.wall().Add(left).UTC(),
		"in", left.Round(time.Millisecond))
}
