package trace

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/session/client"
)

// This file writes what callers see into the history. What voters apply is written by the replica.

// recordAsked records that the group is asked.
func (c *Call) recordAsked(r client.Request) {
	h := c.tracer.config.History
	if h == nil {
		return
	}
	asked := history.Event{Key: r.Key, Try: r.Try}
	if t := r.Terms; t != nil {
		asked.Keys, asked.Permits, asked.Of, asked.Resumes = t.Keys, t.Permits, t.Of, t.Resume
	}
	c.op = h.Call(asked)
}

// recordAnswer records what came of it, and of a grant later that it was lost.
func (c *Call) recordAnswer(err error, held *client.HeldError) {
	h := c.tracer.config.History
	switch {
	case h == nil:
		return
	case held != nil:
		h.Held(c.op, held.Token)
		return
	case err != nil:
		h.Failed(c.op, errorClass(err))
		return
	}
	h.Granted(c.op, c.hold.Token())
	c.tracer.config.Spawn(func() {
		<-c.hold.Done()
		if !errors.Is(c.hold.Err(), client.ErrReleased) {
			c.recordLoss(c.hold.Until())
		}
	})
}

// recordLoss says when a lock was lost, though the process may have been stopped then and notice it
// only now.
func (c *Call) recordLoss(until clock.Time) {
	h := c.tracer.config.History
	h.Lost(c.op, h.Now()-int64(c.tracer.config.Clock.Now().Sub(until)))
}

// recordRelease records that the lock is let go of, the first time that it is, and before that is
// done.
func (c *Call) recordRelease(how Way) {
	if c.tracer.config.History != nil {
		c.unlocking.Do(func() { c.recordFirst(how) })
	}
}

func (c *Call) recordFirst(how Way) {
	switch how {
	case Detach, Lapse: // its caller knows nothing of the lock any more, and it goes on
		c.recordLoss(c.tracer.config.Clock.Now())
		return
	case Unlock:
		_ = c.hold.Err() // a history is told of a loss by itself, and since when
	}
	c.tracer.config.History.Unlock(c.op)
	if how == UnlockSoon { // for a history the call goes on until the release is confirmed
		c.tracer.config.Spawn(func() { c.recordReleased(c.hold.Release(context.Background())) })
	}
}

// recordReleased records what Unlock returns.
func (c *Call) recordReleased(err error) {
	if h := c.tracer.config.History; h != nil {
		h.Unlocked(c.op, errorClass(err))
	}
}

// errorClass names the kind of an error for a history, where texts have no place; "" is none.
func errorClass(err error) string {
	if err == nil {
		return ""
	}
	for _, class := range [...]struct {
		err  error
		name string
	}{
		{context.Canceled, "context"}, {context.DeadlineExceeded, "context"}, {client.ErrLost, "lost"},
		{client.ErrClosed, "closed"}, {client.ErrLeaving, "leaving"}, {client.ErrQueueFull, "queue full"},
		{client.ErrOverloaded, "overloaded"}, {client.ErrNoRoom, "no room"}, {client.ErrBadKey, "bad key"},
		{client.ErrNotHeld, "not held"}, {client.ErrInGrace, "not ready"}, {client.ErrNoLeader, "not ready"},
	} {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	if deadlock := (*client.DeadlockError)(nil); errors.As(err, &deadlock) {
		return "deadlock"
	}
	return "other"
}
