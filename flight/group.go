package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise/locker"
)

// ErrClosed means that the Group was closed before or during the call.
var ErrClosed = errors.New("flight: the group is closed")

var errAbandoned = errors.New("flight: every caller has given up")

// Group holds the calls of one instance for values of one type. It is safe for concurrent use and
// must not be copied. Two Groups with the same keys on one instance do not share calls, but their
// calls exclude each other, as on two instances.
type Group[T any] struct {
	locks locker.Locker

	mu      sync.Mutex // guards calls, closed and the callers of each call; never held while a function runs
	calls   map[string]*call[T]
	closed  bool
	running sync.WaitGroup // goroutines of calls; grows only while closed is false
}

// New returns a Group that locks its keys with locks, usually a *mortise.Node. Close the Group
// before the node.
func New[T any](locks locker.Locker) *Group[T] {
	return &Group[T]{locks: locks, calls: map[string]*call[T]{}}
}

// Do returns the value of key: the value that fresh finds or, if fresh finds none, the value that
// compute returns. The functions that run are those of this caller, of another caller in this
// process, or of another instance. Both functions run under the lock of key, on the goroutine of
// the call. The package comment describes when their context ends.
//
// fresh reports false if the value does not exist. compute computes the value and stores it where
// fresh finds it; use token to fence the write.
//
// Do returns the error of ctx, of locking, of fresh or of compute, or ErrClosed. If the context of
// the call had ended, the error also wraps the cause, for example mortise.ErrLost. If a function
// panics, Do panics with a *PanicError.
func (g *Group[T]) Do(ctx context.Context, key string, fresh func(ctx context.Context) (T, bool, error),
	compute func(ctx context.Context, token locker.Token) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	c, err := g.join(ctx, key, fresh, compute)
	if err != nil {
		return none, err
	}
	select {
	case <-c.done:
		return c.outcome()
	case <-ctx.Done():
		g.quit(key, c)
		return none, fmt.Errorf("flight: %q: %w", key, context.Cause(ctx))
	}
}

func (g *Group[T]) join(ctx context.Context, key string, fresh func(context.Context) (T, bool, error),
	compute func(context.Context, locker.Token) (T, error)) (*call[T], error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, ErrClosed
	}
	c := g.calls[key]
	if c == nil {
		detached, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
		c = &call[T]{cancel: cancel, done: make(chan struct{}), fresh: fresh, compute: compute}
		g.calls[key] = c
		g.running.Go(func() { g.run(detached, key, c) })
	}
	c.callers++
	return c, nil
}

// quit removes a caller from a call. If no callers remain, it cancels the call, and later callers
// start a new one.
func (g *Group[T]) quit(key string, c *call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.callers--; c.callers == 0 {
		g.forget(key, c)
		c.cancel(errAbandoned)
	}
}

// forget prevents further callers from joining a call. The caller must hold mu.
func (g *Group[T]) forget(key string, c *call[T]) {
	if g.calls[key] == c {
		delete(g.calls, key)
	}
}

func (g *Group[T]) run(ctx context.Context, key string, c *call[T]) {
	var err error
	defer func() { g.publish(key, c, causeText(ctx, err)) }()
	err = g.locks.Do(ctx, key, func(held context.Context, token locker.Token) error {
		// Publish before the lock is released, so that the callers do not wait for the release.
		defer func() { g.publish(key, c, c.err) }()
		c.work(held, token)
		return nil
	})
}

// publish sets the result of a call and wakes its callers, unless an earlier publish has done so.
// It also ends the context of the call, so that the Locker does not wait for the confirmation of
// the release.
func (g *Group[T]) publish(key string, c *call[T], err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.over {
		return
	}
	c.over, c.err = true, err
	g.forget(key, c)
	close(c.done)
	c.cancel(nil)
}

// Close cancels the running calls and waits until their goroutines have ended. Their callers get
// ErrClosed unless the functions succeed nevertheless. Close may be called more than once.
func (g *Group[T]) Close() {
	g.mu.Lock()
	g.closed = true
	for _, c := range g.calls {
		c.cancel(ErrClosed)
	}
	g.mu.Unlock()
	g.running.Wait()
}
