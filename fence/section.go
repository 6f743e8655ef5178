package fence

import (
	"context"

	"github.com/mortise-lock/mortise"
)

// run is one fn that a Mark has admitted.
type run struct {
	cancel context.CancelCauseFunc
}

// Do implements [Section]. Runs of one token run at the same time. A higher token is marked at
// once, which refuses lower ones from then on and ends the contexts of those that run; then it
// waits until these have returned. ctx bounds that wait: if it ends, fn does not run, and the token
// stays marked. If it has ended before, nothing is marked either. So an fn that ignores its context
// holds up its successors, and no others.
func (m *Mark) Do(ctx context.Context, resource string, token mortise.Token, fn func(context.Context) error) error {
	if err := check(resource, token); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{cancel: cancel}
	c, err := m.enter(ctx, resource, token, r)
	if err != nil {
		return err
	}
	defer m.leave(resource, c, r)
	return fn(ctx)
}

// enter waits for the turn of token.
func (m *Mark) enter(ctx context.Context, resource string, token mortise.Token, r *run) (*cell, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for {
		c, err := m.advance(resource, token)
		if err != nil {
			return nil, err
		}
		if len(c.runs) == 0 || c.turn == token {
			if c.runs == nil {
				c.runs = map[*run]bool{}
			}
			c.turn, c.runs[r] = token, true
			return c, nil
		}
		if err := m.await(ctx, c); err != nil {
			m.tidy(resource, c)
			return nil, err
		}
	}
}

// await gives mu up until the runs of the cell have ended. While it waits the cell counts as used
// and is not dropped.
func (m *Mark) await(ctx context.Context, c *cell) error {
	if c.over == nil {
		c.over = make(chan struct{})
	}
	over := c.over
	c.waiting++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		c.waiting--
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// leave ends a run, and lets others in if it was the last.
func (m *Mark) leave(resource string, c *cell, r *run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(c.runs, r)
	if len(c.runs) > 0 {
		return
	}
	if c.over != nil {
		close(c.over)
		c.over = nil
	}
	m.tidy(resource, c)
}
