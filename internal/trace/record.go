package trace

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// This file writes the calls and their results to a history. The replica writes the changes that
// voters apply.

func (c *Call) recordAsked(r *client.Request) {
	h := c.tracer.config.History
	if h == nil {
		return
	}
	asked := history.Event{Key: r.Key, Try: r.Try}
	if t := r.Terms; t != nil {
		asked.Keys, asked.Permits, asked.Of, asked.Resumes = t.Keys, t.Permits, t.Of, t.Resume
		asked.Modes = history.Modes(t.Modes)
		asked.Upgrades = t.UpgradedToken()
	}
	c.op = h.Call(asked)
}

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
		for {
			<-c.hold.Done()
			// For the history, a hold that is good again after a doubt was held in between.
			err := c.hold.Regain(context.Background())
			if err != nil && !errors.Is(err, client.ErrReleased) {
				c.recordLoss(c.hold.Until())
			}
			if err != nil {
				return
			}
		}
	})
}

// recordLoss records the loss of a lock. The parameter until is the time of the loss. A stopped
// process may detect the loss long after that time.
func (c *Call) recordLoss(until clock.Time) {
	h := c.tracer.config.History
	h.Lost(c.op, h.Now()-int64(c.tracer.config.Clock.Now().Sub(until)))
}

// Enters must be called when a request for want enters the lock of the call again.
func (c *Call) Enters(want *lockfsm.Grant) {
	if c != nil && c.tracer.config.History != nil {
		c.tracer.config.History.Enter(c.op, history.Event{Key: want.Key, Keys: want.Keys, Permits: want.Permits,
			Of: want.Of, Modes: history.Modes(want.Modes)})
	}
}

// Downgrades must be called before the lock of the call is made shared.
func (c *Call) Downgrades() {
	if c != nil && c.tracer.config.History != nil {
		c.tracer.config.History.Downgrade(c.op)
	}
}

func (c *Call) recordRelease(how Way) {
	if c.tracer.config.History != nil {
		c.unlocking.Do(func() { c.recordFirst(how) })
	}
}

func (c *Call) recordFirst(how Way) {
	switch how {
	case Detach, Lapse: // the lock is not released, but the caller gets no more events
		c.detached.Store(true)
		now := c.tracer.config.Clock.Now()
		if c.hold.Err() == client.ErrInJeopardy {
			now = c.hold.Until()
		}
		c.recordLoss(now)
		return
	case Unlock, UnlockSoon:
		if c.hold.Err() == client.ErrInJeopardy { // the caller relies on the lock no longer
			c.recordLoss(c.hold.Until())
		}
	}
	c.tracer.config.History.Unlock(c.op)
	if how == UnlockSoon { // in a history the call lasts until the release is confirmed
		c.tracer.config.Spawn(func() { c.recordReleased(c.hold.Release(context.Background())) })
	}
}

func (c *Call) recordReleased(err error) {
	if h := c.tracer.config.History; h != nil && !c.detached.Load() {
		h.Unlocked(c.op, errorClass(err))
	}
}

// errorClass returns the kind of an error, because a history contains no error texts. It returns ""
// for nil.
func errorClass(err error) string {
	if err == nil {
		return ""
	}
	for _, class := range [...]struct {
		err  error
		name string
	}{
		{context.Canceled, "context"}, {context.DeadlineExceeded, "context"},
		{client.ErrLost, "lost"}, {client.ErrInJeopardy, "in doubt"},
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
