package trace

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

// Release describes how a handle of a lock is released.
type Release struct {
	Way   Way
	Last  bool // this release ends the lock, because the lock has no other handle
	First bool // the first release of this handle; only this one calls hooks

	began   clock.Time
	doubted bool // the lock was in doubt
}

// Way is a way to release a lock.
type Way uint8

// The ways are named after methods of Lock in package mortise.
const (
	Unlock Way = iota
	UnlockSoon
	Detach
	Lapse
)

// Releasing must be called before a handle is released. Its result must be passed to Released.
func (c *Call) Releasing(r Release) Release {
	if c == nil {
		return r
	}
	if r.First {
		// Err also reports a loss that was not detected before this release.
		r.doubted = c.hold.Err() == client.ErrInJeopardy
		r.began = c.tracer.config.Clock.Now()
	}
	if r.Last {
		c.recordRelease(r.Way)
	}
	return r
}

// Released must be called after the handle was released, with the error that the caller gets.
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

func (r Release) end(err error) End {
	switch {
	case r.doubted && errors.Is(err, client.ErrLost): // Hooks.Lost is not called
		return Unconfirmed
	case errors.Is(err, client.ErrLost):
		return Gone
	case errors.Is(err, client.ErrInJeopardy): // the lock has other handles, and may be good again
		return Left
	case errors.Is(err, client.ErrClosed):
		return Stopped
	case errors.Is(err, client.ErrNoRoom): // from Detach; the lock has ended, and this is confirmed
		return Confirmed
	case err != nil:
		return Unconfirmed
	case !r.Last:
		return Left
	}
	return [...]End{Unlock: Confirmed, UnlockSoon: Soon, Detach: Detached, Lapse: Detached}[r.Way]
}
