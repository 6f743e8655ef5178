package client

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// kept is the shell of Stays. Callers and the client's goroutine use it under mu, which is never
// held while waiting. A pass is granted under mu, after a reading of the clock, and its loss is
// marked under mu before a later deadline is published. So a renewal cannot make a lost pass valid
// again.
type kept struct {
	mu    sync.Mutex
	stays *Stays
}

// window must be called under kept.mu.
func (c *Client) window() Window {
	now := c.config.Clock.Now() // before the deadlines are read; see Hold
	return Window{Now: now, Safe: clock.Time(c.safe.Load()), Deadline: clock.Time(c.deadline.Load()),
		TTL: time.Duration(c.ttl.Load())}
}

// lockKept begins a call for a pass. It returns done false if the call must ask the group with an
// ordinary request.
func (c *Client) lockKept(ctx context.Context, h *Hold) (done bool, err error) {
	if t := h.req.Terms; t != nil && t.Under != nil {
		return false, nil
	}
	h.kept = StayCaller{Key: h.req.Key, Try: h.req.Try, Caller: h}
	k := &c.kept
	k.mu.Lock()
	answer := k.stays.Lock(c.window(), &h.kept)
	h.isKept = answer != StayOrdinary
	h.token = h.kept.token
	if answer == StayWaits {
		h.slot = c.slot()
	}
	c.carry(0)
	k.mu.Unlock()
	switch answer {
	case StayOrdinary:
		return false, nil
	case StayGranted:
		return true, nil
	case StayHeld:
		return true, c.heldHere(h)
	case StayFull:
		return true, ErrOverloaded
	}
	select {
	case <-h.slot:
		c.slots.Put(h.slot)
		return true, h.result
	case <-ctx.Done():
	}
	k.mu.Lock()
	k.stays.Cancel(c.window(), &h.kept)
	c.carry(0)
	k.mu.Unlock()
	return true, &WaitError{Key: h.req.Key, Behind: h.ahead.Load(), Err: ContextError(ctx)}
}

// heldHere returns the error for a Try that has met another caller of this client.
func (c *Client) heldHere(h *Hold) *HeldError {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := &HeldError{Key: h.req.Key, Session: c.status.Session, Record: bytes.Clone(c.record), Token: h.token}
	h.ahead.Store(err)
	return err
}

// unlockKept ends a pass. The reading of the clock decides whether the lock was held until now.
func (c *Client) unlockKept(h *Hold) error {
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	w := c.window()
	h.mu.Lock()
	if !w.Now.Before(w.Deadline) {
		_ = h.endIn(ErrLost, LossLease, w.Deadline)
	}
	err := h.endIn(ErrReleased, 0, 0)
	h.mu.Unlock()
	k.stays.Unlock(w, &h.kept)
	c.carry(0)
	if err == ErrReleased {
		return nil
	}
	return err
}

// yield gives back a free stay of a key before a request of this client for the key is sent to the
// group, and notes that the request is made under a pass.
func (c *Client) yield(r *Request) {
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stays.Before(r)
	c.carry(0)
}

// stayOf returns the request of the stay under whose pass h holds the lock.
func (c *Client) stayOf(h *Hold) *Request {
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	if r := c.kept.stays.Request(&h.kept); r != nil {
		return r
	}
	return &h.req
}

// carry delivers the news of the stays, and posts their commands. until is the end of the holds
// that are lost; zero means now, or the deadline if it is earlier. carry must be called under
// kept.mu.
func (c *Client) carry(until clock.Time) {
	s := c.kept.stays
	for len(s.Commands)+len(s.News) > 0 {
		c.deliver(until)
		commands := s.Commands
		s.Commands = nil
		for i := range commands {
			if !c.post(input{kind: inputStay, stay: &commands[i]}) && commands[i].Kind == StayAcquire {
				s.Failed(commands[i].Request, ErrClosed)
			}
		}
	}
}

func (c *Client) deliver(until clock.Time) {
	s := c.kept.stays
	for i := range s.News {
		n := &s.News[i]
		h := n.Caller.Caller.(*Hold)
		switch {
		case n.Granted:
			h.token = n.Caller.token
			h.slot <- struct{}{}
		case n.Wanted:
			if t := h.req.Terms; t != nil && t.Notice {
				h.want()
			}
		case n.Behind != nil:
			h.ahead.Store(n.Behind)
		case n.Lost:
			h.end(n.Err, n.Why, until)
		default:
			h.result = n.Err
			h.slot <- struct{}{}
		}
		*n = StayNews{}
	}
	s.News = s.News[:0]
}

// keptDo passes the commands of f directly to the core. Only the goroutine may call it, between the
// inputs of a turn.
func (c *Client) keptDo(now clock.Time, f func(*Stays)) {
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.stays)
	commands := k.stays.Commands
	k.stays.Commands = nil
	for i := range commands {
		c.core.Stay(now, &commands[i])
	}
	c.carry(0)
}

// keptSays passes an outcome of the core to the stays.
func (c *Client) keptSays(until clock.Time, f func(*Stays, Window)) {
	k := &c.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	f(k.stays, c.window())
	c.carry(until)
}

func (c *Client) stayOutcome(o *Outcome) {
	c.keptSays(0, func(s *Stays, w Window) { s.Outcome(w, o) })
}

// counted replaces the counts of a status of the core. A free stay does not count as held. Callers
// that wait for a stay count, and the request of the stay does not. The core may not have taken the
// newest commands, so the counts may be wrong until its next turn.
func (c *Client) counted(s Status) Status {
	c.kept.mu.Lock()
	free, asked, waiting := c.kept.stays.Counts()
	c.kept.mu.Unlock()
	free, asked = min(free, s.Held), min(asked, s.Waiting)
	s.Held -= free
	s.Waiting += waiting - asked
	s.Requests += waiting - asked - free
	return s
}

// heldKeys returns keys that callers hold, for an error text.
func (c *Client) heldKeys() []string {
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	return c.core.heldKeys(c.kept.stays.isFree)
}

func (c *Client) next() clock.Time {
	next := c.core.Next()
	c.kept.mu.Lock()
	defer c.kept.mu.Unlock()
	if t := c.kept.stays.Next(c.now); t != 0 && (next == 0 || t.Before(next)) {
		next = t
	}
	return next
}
