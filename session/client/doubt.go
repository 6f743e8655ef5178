package client

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// This file is about holds whose request has a Grace. At the deadline of the lease such a hold is
// not lost, but in doubt: the core sends no Release, and the next Attach names its entry. The hold
// is good again if two things are known. The group has stated, on the present attachment, that the
// entry is granted with the same token. And a renewal was acknowledged whose deadline has not
// passed. One of them is not enough: the session may have lost the entry, and an older
// acknowledgement proves only the past.
//
// No command grants a finished number again. So the statement proves that the hold was at the head
// of its queues until then, and that no conflicting request was granted. The doubt ends with a loss
// when the grace is over, or when the group states anything else.

func (s stage) holds() bool { return s == stageHeld || s == stageDoubt }

func (r *Request) grace() time.Duration {
	if r.Terms == nil {
		return 0
	}
	return r.Terms.Grace
}

// Doubt puts a held request with a grace in doubt, from the time since on. It is for a shell whose
// caller has read a later clock than the core.
func (c *Core) Doubt(now clock.Time, r *Request, since clock.Time) {
	c.begin(now)
	if r.stage == stageHeld {
		c.doubt(r, since)
	}
}

func (c *Core) doubt(r *Request, since clock.Time) {
	c.held--
	c.doubts++
	r.stage = stageDoubt
	r.Terms.doubtEnds = since.Add(r.Terms.Grace)
	if ends := r.Terms.doubtEnds; c.doubts == 1 || ends.Before(c.doubtEnds) {
		c.doubtEnds = ends
	}
	c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeInDoubt, Request: r})
}

// endDoubts loses the holds whose grace is over.
func (c *Core) endDoubts(now clock.Time) {
	if c.doubts == 0 || now.Before(c.doubtEnds) {
		return
	}
	c.doubtEnds = 0
	for e := c.sent.head; e != nil; e = e.next {
		r := e.req
		if r == nil || r.stage != stageDoubt {
			continue
		}
		if ends := r.Terms.doubtEnds; !now.Before(ends) {
			c.loseFree(e)
		} else if c.doubtEnds == 0 || ends.Before(c.doubtEnds) {
			c.doubtEnds = ends
		}
	}
}

// regain makes the confirmed holds in doubt good again. It runs at the end of a turn, after every
// input that could lose one of them.
func (c *Core) regain(now clock.Time) {
	if c.doubts == 0 || c.phase != Attached || !now.Before(c.lease.deadline()) {
		return
	}
	for e := c.sent.head; e != nil; e = e.next {
		if r := e.req; r != nil && r.stage == stageDoubt && e.seen == c.epoch {
			c.doubts--
			c.held++
			r.stage = stageHeld
			c.outcomes = append(c.outcomes, Outcome{Kind: OutcomeGood, Request: r})
		}
	}
}

// grace returns how long the hold can be in doubt.
func (h *Hold) grace() time.Duration {
	if h.req == nil { // a pass
		return 0
	}
	return h.req.grace()
}

// Regain waits until a hold in doubt is good again, and returns nil, or until it has ended, and
// returns the error of Err. If ctx ends first, it returns an error that wraps the error of ctx, and
// after Close it may return ErrClosed.
func (h *Hold) Regain(ctx context.Context) error {
	settled := func(Status) bool { return h.Err() != ErrInJeopardy }
	for {
		if err := h.Err(); err != ErrInJeopardy {
			return err
		}
		waited := h.client.wait(ctx, inputWait, settled)
		if err := h.Err(); err != ErrInJeopardy {
			return err
		}
		switch {
		case waited == ErrClosed:
			return waited
		case waited != nil:
			return fmt.Errorf("mortise: lock %q is in doubt: %w", h.Key(), waited)
		}
	}
}

// expired returns the reason why a hold with a grace is not held at the time now, which is past a
// deadline that Err has read. The first such call begins the doubt, and one after the grace ends
// the hold.
func (h *Hold) expired(now clock.Time) error {
	h.mu.Lock()
	deadline := clock.Time(h.client.deadline.Load()) // before h.ended; see Err
	if h.ended == nil && now.Before(deadline) {
		h.mu.Unlock()
		return h.Err() // the client has renewed the lease since Err read the deadline
	}
	defer h.mu.Unlock()
	if h.ended == nil {
		_ = h.endIn(ErrInJeopardy, LossLease, deadline)
		h.client.post(input{kind: inputDoubt, hold: h})
	}
	if h.ended != ErrInJeopardy {
		return h.ended
	}
	switch {
	case h.limit != 0 && !now.Before(h.limit):
		_ = h.endIn(OverdueError{}, LossOverdue, h.limit)
	case !now.Before(h.until.Add(h.grace())):
		_ = h.endIn(ErrLost, LossLease, h.until)
	default:
		return ErrInJeopardy
	}
	h.client.post(input{kind: inputExpired, hold: h})
	return h.ended
}

// doubted returns when the present doubt began, or zero.
func (h *Hold) doubted() clock.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != ErrInJeopardy {
		return 0
	}
	return h.until
}

// good ends the doubt. The client must have published the deadline of the renewal that confirms the
// hold.
func (h *Hold) good() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != ErrInJeopardy {
		return // released, or ended by Err, which has read a later clock
	}
	h.ended, h.until, h.done = nil, 0, nil
	h.over.Store(false)
	if h.lost != nil {
		h.lost(LossLease, nil)
	}
}

// endedNow returns why a hold has ended whose Done was closed. A hold that is good again was in
// doubt.
func (h *Hold) endedNow() error { return cmp.Or(h.Err(), ErrInJeopardy) }
