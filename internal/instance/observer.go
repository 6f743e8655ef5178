package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// observer observes one session, and converts its events to NodeEvents. It runs on the goroutine of
// the session's client.
type observer struct {
	node   *Instance
	own    bool // the session is one of the user's own
	losses lossLog
	grace  clock.Time // the end of the grace that was last logged
}

func (w *observer) news(news *client.News) {
	n, before, after := w.node, &news.Before, &news.After
	now := n.env.clock.Now()
	w.log(now, before, after)
	n.trace.ReportLeaks() // news comes with each renewal of the lease
	if !w.own {
		n.noteAvailable(now, after)
	}
	if n.config.Hooks == nil {
		return
	}
	id := SessionText(after.Session)
	if after.Session != before.Session {
		w.tellSession(before, after)
	}
	if after.Lease != before.Lease {
		e := NodeEvent{State: after.Lease.String(), Session: id, Left: max(after.Deadline.Sub(now), 0)}
		n.tell(e)
	}
	for _, took := range news.Renewed {
		n.tell(NodeEvent{State: stateAcknowledged, Session: id, Took: took})
	}
	for range news.Unanswered {
		n.tell(NodeEvent{State: stateUnanswered, Session: id})
	}
}

func (n *Instance) noteAvailable(now clock.Time, s *client.Status) {
	can := s.Phase == client.Attached && s.GraceUntil == 0 && s.Lease != client.Lost
	took, changed := n.grantable.set(now, can)
	if !changed {
		return
	}
	e := NodeEvent{State: stateUnavailable, Took: took}
	if can {
		e.State = stateAvailable
	}
	n.tell(e)
}

func (w *observer) tellSession(before, after *client.Status) {
	if before.Session != 0 {
		w.node.tell(NodeEvent{State: after.Ended.String(), Session: SessionText(before.Session)})
	}
	if after.Session != 0 {
		w.node.tell(NodeEvent{State: stateOpened, Session: SessionText(after.Session)})
	}
}

// SessionText returns a session ID in the form in which Peek shows it.
func SessionText(id lockfsm.SessionID) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprint(uint64(id))
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
