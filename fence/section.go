package fence

import (
	"context"

	"github.com/mortise-lock/mortise"
)

type run struct {
	cancel context.CancelCauseFunc
}

// Do implements [Section]. Calls with the same token run concurrently. Do first records token,
// which cancels the contexts of runs with lower tokens. It then waits until these runs have
// returned, and calls fn. If ctx ends during the wait, fn does not run, but token remains recorded.
// If ctx has ended before the call, Do records nothing. An fn that ignores its context blocks only
// later tokens of the same resource.
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

// await waits until the runs of the cell have ended or ctx ends. The caller must hold mu. The
// method unlocks mu during the wait.
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
