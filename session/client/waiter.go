package client

import (
	"context"
	"fmt"
	"strings"
)

// WaitAttached waits until the client is attached to a leader, which proves that the group can
// commit. It fails with ctx's error or ErrClosed.
func (c *Client) WaitAttached(ctx context.Context) error {
	return c.wait(ctx, inputWait, func(s Status) bool { return s.Phase == Attached })
}

// WaitReady waits until the client is attached and the grace is over. It fails like WaitAttached.
func (c *Client) WaitReady(ctx context.Context) error {
	return c.wait(ctx, inputWait, func(s Status) bool { return s.Phase == Attached && s.GraceUntil == 0 })
}

// WaitReleased waits until no lock is held. It fails like WaitAttached. The error of ctx names the
// held keys.
func (c *Client) WaitReleased(ctx context.Context) error {
	err := c.wait(ctx, inputWait, func(s Status) bool { return s.Held == 0 })
	if err == nil || err == ErrClosed {
		return err
	}
	w := &waiter{held: make(chan []string, 1)}
	if !c.post(input{kind: inputHeld, waiter: w}) {
		return err
	}
	select {
	case keys := <-w.held:
		if len(keys) == 0 {
			return nil // released, although ctx has ended
		}
		return fmt.Errorf("%s: %w", strings.Join(keys, ", "), err)
	case <-c.ended:
		return err
	}
}

// CloseSession ends the session in the group, and waits for its end or for the end of ctx. It fails
// with ErrStillHeld while a lock is held. Waiting and later calls end with ErrClosed.
func (c *Client) CloseSession(ctx context.Context) error { return c.wait(ctx, inputCloseSession, nil) }

func (c *Client) wait(ctx context.Context, kind inputKind, done func(Status) bool) error {
	w := &waiter{done: done, result: make(chan error, 1)}
	if !c.post(input{kind: kind, waiter: w}) {
		return ErrClosed
	}
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
		c.post(input{kind: inputForget, waiter: w})
		return ContextError(ctx)
	}
}

func without(all []*waiter, w *waiter) []*waiter {
	for i := range all {
		if all[i] == w {
			return append(all[:i], all[i+1:]...)
		}
	}
	return all
}

func (c *Client) answerDone() {
	if len(c.waiting) == 0 {
		return
	}
	status := c.counted(c.core.Status(c.config.Clock.Now()))
	var done []*waiter
	for _, w := range c.waiting {
		if w.done(status) {
			done = append(done, w)
		}
	}
	for _, w := range done {
		c.waiting = without(c.waiting, w)
	}
	c.answer(&done, nil)
}

func (c *Client) answer(all *[]*waiter, err error) {
	for i, w := range *all {
		w.result <- err
		(*all)[i] = nil
	}
	*all = (*all)[:0]
}
