package trace

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

// Release says how a handle of a lock is let go of.
type Release struct {
	Way   Way
	Last  bool // no other handle has the lock: it ends with this one
	First bool // for this handle; hooks hear of no other time

	began clock.Time
}

// Way is one of the ways to let go of a lock.
type Way uint8

// The ways to let go, as Lock of package mortise has them.
const (
	Unlock Way = iota
	UnlockSoon
	Detach
	Lapse
)

// Releasing is told before the handle is let go of, and returns what Released is to be told.
func (c *Call) Releasing(r Release) Release {
	if c == nil {
		return r
	}
	if r.First {
		_ = c.hold.Err() // a loss that is found only now is told before the release
		r.began = c.tracer.config.Clock.Now()
	}
	if r.Last {
		c.recordRelease(r.Way)
	}
	return r
}

// Released is told after the handle was let go of, with what the caller gets.
func (c *Call) Released(ctx context.Context, r Release, err error) {
	if c == nil {
		return
	}
	if r.Last && r.Way == Unlock {
		c.recordReleased(err)
	}
	h := c.tracer.config.Hooks.Unlocked
	if h == nil || !r.First {
		return
	}
	e := c.about(r.began)
	e.Err, e.End, e.Took = err, r.end(err), c.tracer.config.Clock.Now().Sub(r.began)
	if !r.Last || e.End == Gone {
		e.Held = 0
	}
	c.tracer.queue.call(func() { h(ctx, e) })
}

// end returns what err means for the caller that lets go.
func (r Release) end(err error) End {
	switch {
	case errors.Is(err, client.ErrLost):
		return Gone
	case errors.Is(err, client.ErrClosed):
		return Stopped
	case errors.Is(err, client.ErrNoRoom): // of a Detach; the lock has ended, and that is confirmed
		return Confirmed
	case err != nil:
		return Unconfirmed
	case !r.Last:
		return Left
	}
	return [...]End{Unlock: Confirmed, UnlockSoon: Soon, Detach: Detached, Lapse: Lapsed}[r.Way]
}
