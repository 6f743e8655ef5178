package trace

import (
	"context"
	"errors"
	"sync"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// Call is what the observers know of one call for a lock, and then of the lock. Nil means that
// there are no observers.
type Call struct {
	tracer *Tracer
	began  clock.Time
	event  Event // what is the same in all events of the lock; set before granted
	mark   []byte
	hold   *client.Hold // nil until the group is asked
	op     uint64       // in the history; 0: the group was not asked
	tried  bool         // the answer was that the lock is held
	since  clock.Time   // of the grant

	unlocking sync.Once // the first release is recorded before any of them is done

	mu      sync.Mutex // guards the rest; never held across a wait
	granted bool       // Hooks.Acquired has returned
	lost    *Event     // the lock was lost before that
}

// Start begins a call. It is the beginning of every call, also of one that is refused at once.
func (t *Tracer) Start(ctx context.Context, asked Asked) *Call {
	if t == nil || !t.locks && t.config.History == nil {
		return nil
	}
	c := &Call{tracer: t, event: Event{Asked: asked}}
	if h := t.config.Hooks.Mark; h != nil {
		t.queue.call(func() { c.mark = h(ctx) })
	}
	c.began = t.config.Clock.Now()
	return c
}

// Mark returns what is to travel with the request. Nil means nothing.
func (c *Call) Mark() []byte {
	if c == nil {
		return nil
	}
	return c.mark
}

// Asks is told before the group is asked for r, which is to be granted to hold.
func (c *Call) Asks(r client.Request, hold *client.Hold) {
	if c == nil {
		return
	}
	c.hold = hold
	if c.tracer.locks {
		hold.OnLoss(c.isLost)
	}
	c.recordAsked(r)
}

// Answered is told what the group has answered to Asks. Nil means that it has granted the lock.
func (c *Call) Answered(err error) {
	if c == nil {
		return
	}
	held := heldError(err)
	c.tried = held != nil
	c.recordAnswer(err, held)
}

// heldError returns the error of a try that found the lock held, or nil.
func heldError(err error) *client.HeldError {
	if err == nil {
		return nil // before anything is allocated
	}
	var held *client.HeldError
	errors.As(err, &held)
	return held
}

// Refused ends a call that has granted nothing, with the error that its caller gets.
func (c *Call) Refused(ctx context.Context, err error) {
	if c == nil {
		return
	}
	e := c.ending(Refused)
	e.Err = err
	c.met(&e)
	c.acquired(ctx, e)
}

// Entered ends a call that was given another handle of a lock. The call that was granted the lock
// is first, and later events are first's.
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

// ending is the event of the end of the call.
func (c *Call) ending(how End) Event {
	e := c.event
	e.End, e.Took = how, c.tracer.config.Clock.Now().Sub(c.began)
	return e
}

// acquired calls the hook, if there is one.
func (c *Call) acquired(ctx context.Context, e Event) (tag any) {
	if h := c.tracer.config.Hooks.Acquired; h != nil {
		c.tracer.queue.call(func() { tag = h(ctx, e) })
	}
	return tag
}

// met notes which session was in the way.
func (c *Call) met(e *Event) {
	if c.hold != nil {
		e.Behind = c.hold.Behind()
	}
	switch {
	case e.Behind != nil && c.tried:
		e.Waiting = e.Behind.Waiters
	case e.Behind != nil:
		e.Waiting = max(e.Behind.Waiters-1, 0) // the call is counted itself
	case e.Err != nil:
		e.Waiting = -1
	}
}

// isGranted opens the way for Lost, and tells what came before.
func (c *Call) isGranted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.granted = true
	if c.lost != nil {
		c.tellLost(*c.lost)
	}
}

// isLost takes the loss of the hold. Of a call that has given up it means nothing.
func (c *Call) isLost(why client.Loss, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := Event{End: Lost, Loss: why, Err: err}
	if !c.granted {
		c.lost = &e
		return
	}
	c.tellLost(e)
}

func (c *Call) tellLost(lost Event) {
	h := c.tracer.config.Hooks.Lost
	if h == nil {
		return
	}
	e := c.about(c.tracer.config.Clock.Now())
	e.End, e.Loss, e.Err = Lost, lost.Loss, lost.Err
	c.tracer.queue.later(func() { h(e) })
}

// about is what all events have of a lock that was held until now.
func (c *Call) about(now clock.Time) Event {
	e := c.event
	e.Held = now.Sub(c.since)
	return e
}
