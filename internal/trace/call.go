package trace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Call is the state of one call for a lock, and later the state of the lock. A Call is nil if there
// are no observers.
type Call struct {
	tracer *Tracer
	began  clock.Time
	event  Event // the fields that all events of the lock share; set before granted
	parent []byte
	hold   *client.Hold // nil until Asks
	op     uint64       // number in the history; 0 before Asks
	tried  bool         // the group refused the request because the lock is held
	since  clock.Time

	unlocking sync.Once   // ensures that only the first release is recorded
	detached  atomic.Bool // the first release was a Detach, so a later Unlock releases nothing

	mu      sync.Mutex // guards the fields below; never held across a wait
	granted bool       // Hooks.Acquired has returned
	early   []Event    // a loss, and doubts, that occurred before granted was set
}

// Observes reports whether calls have observers.
func (t *Tracer) Observes() bool { return t != nil && (t.locks || t.config.History != nil) }

// Start begins a call, even one that is refused immediately.
func (t *Tracer) Start(ctx context.Context, asked Asked) *Call {
	if !t.Observes() {
		return nil
	}
	c := &Call{tracer: t, event: Event{Asked: asked}}
	if h := t.config.Hooks.Mark; h != nil {
		t.queue.call(func() { c.parent = h(ctx) })
	}
	c.began = t.config.Clock.Now()
	return c
}

// Mark returns the trace parent of the request, or nil.
func (c *Call) Mark() []byte {
	if c == nil {
		return nil
	}
	return c.parent
}

// Asks must be called before the group gets the request r. hold is the hold that the group may
// grant.
func (c *Call) Asks(r *client.Request, hold *client.Hold) {
	if c == nil {
		return
	}
	c.hold = hold
	if c.tracer.locks {
		hold.OnLoss(c.isLost)
	}
	c.recordAsked(r)
}

// Answered must be called with the error that the group has returned. Nil means that the lock is
// granted.
func (c *Call) Answered(err error) {
	if c == nil {
		return
	}
	held := heldError(err)
	c.tried = held != nil
	c.recordAnswer(err, held)
}

func heldError(err error) *client.HeldError {
	if err == nil {
		return nil // avoids an allocation
	}
	var held *client.HeldError
	errors.As(err, &held)
	return held
}

// Refused ends a call that was not granted the lock. err is the error that its caller gets.
func (c *Call) Refused(ctx context.Context, err error) {
	if c == nil {
		return
	}
	e := c.ending(Refused)
	e.Err = err
	c.met(&e)
	c.acquired(ctx, e)
}

// Entered ends a call that has got another handle of a held lock. Later events of the lock belong
// to first, the call that was granted the lock.
func (c *Call) Entered(ctx context.Context, first *Call, token lockfsm.Token) {
	if c == nil {
		return
	}
	e := c.ending(Entered)
	if first != nil {
		e.Tag = first.event.Tag
	}
	e.Token = token
	c.acquired(ctx, e)
}

// Granted ends a call that was granted the lock.
func (c *Call) Granted(ctx context.Context) {
	if c == nil {
		return
	}
	e := c.ending(Granted)
	e.Token = c.hold.Token()
	c.met(&e)
	c.since = c.began.Add(e.Took)
	c.event.Token, c.event.Behind, c.event.Waiting = e.Token, e.Behind, e.Waiting
	c.event.Tag = c.acquired(ctx, e)
	c.isGranted()
}

func (c *Call) ending(how End) Event {
	e := c.event
	e.End, e.Took = how, c.tracer.config.Clock.Now().Sub(c.began)
	return e
}

func (c *Call) acquired(ctx context.Context, e Event) (tag any) {
	if h := c.tracer.config.Hooks.Acquired; h != nil {
		c.tracer.queue.call(func() { tag = h(ctx, e) })
	}
	return tag
}

func (c *Call) met(e *Event) {
	if c.hold != nil {
		e.Behind = c.hold.Behind()
	}
	switch {
	case e.Behind != nil && c.hold.Upgraded():
		e.Waiting = 0 // it passes all that wait
	case e.Behind != nil && c.tried:
		e.Waiting = e.Behind.Waiters
	case e.Behind != nil:
		e.Waiting = max(e.Behind.Waiters-1, 0) // the count includes the call itself
	case e.Err != nil:
		e.Waiting = -1
	}
}

// isGranted allows calls of Hooks.Lost and Hooks.InDoubt, and reports what occurred before.
func (c *Call) isGranted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted = true
	for i := range c.early {
		c.tell(&c.early[i])
	}
	c.early = nil
}

func (c *Call) isLost(why client.Loss, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := Event{End: Lost, Loss: why, Err: err}
	switch err {
	case nil:
		e.End = Regained
	case client.ErrInJeopardy:
		e.End = InDoubt
	}
	if !c.granted {
		c.early = append(c.early, e)
		return
	}
	c.tell(&e)
}

func (c *Call) tell(of *Event) {
	h := c.tracer.config.Hooks.Lost
	if of.End != Lost {
		h = c.tracer.config.Hooks.InDoubt
	}
	if h == nil {
		return
	}
	e := c.about(c.tracer.config.Clock.Now())
	e.End, e.Loss, e.Err = of.End, of.Loss, of.Err
	c.tracer.queue.later(func() { h(e) })
}

func (c *Call) about(now clock.Time) Event {
	e := c.event
	e.Held = now.Sub(c.since)
	return e
}
