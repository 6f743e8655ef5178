package flight

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// ErrClosed says that the Group was closed before or during the call.
var ErrClosed = errors.New("flight: the group is closed")

// errAbandoned ends the context of a call that nobody waits for.
var errAbandoned = errors.New("flight: every caller has given up")

// Locker is what a Group needs of a *mortise.Node, which is one: Do locks key, runs fn with a
// context that ends when the lock is lost, and unlocks, also if fn ends its goroutine. It must be
// safe for concurrent use.
type Locker interface {
	Do(ctx context.Context, key string, fn func(ctx context.Context, token mortise.Token) error) error
}

// Group is the calls of one instance for values of one type. Make one with New. It is safe for
// concurrent use and must not be copied. Two Groups with the same keys on one instance do not share
// calls, and exclude each other as two instances do.
type Group[T any] struct {
	locker Locker

	mu      sync.Mutex          // guards all below, and callers of each call; never held while a function runs
	calls   map[string]*call[T] // those that a caller can join
	closed  bool
	running sync.WaitGroup // the goroutines of calls; counted up only while closed is false
}

// New returns a Group whose keys are locked by locker. The caller closes it before the node.
func New[T any](locker Locker) *Group[T] {
	return &Group[T]{locker: locker, calls: map[string]*call[T]{}}
}

// Do returns the value of key: what fresh finds, or else what compute computes, by this caller, by
// another one of this process, or by another instance. Both functions run under the lock of key, in
// a goroutine of the call, with a context that ends as the package comment says.
//
// fresh looks whether the value is there and reports false if it is not. compute makes it and
// leaves it where fresh finds it; token fences that write.
//
// The error is that of ctx, of locking, of fresh or of compute, or is ErrClosed; if the context of
// the call had ended it is also the reason for that, mortise.ErrLost for example. A panic of a
// function is repeated here, see PanicError.
func (g *Group[T]) Do(ctx context.Context, key string, fresh func(ctx context.Context) (T, bool, error),
	compute func(ctx context.Context, token mortise.Token) (T, error)) (T, error) {
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

// join adds a caller to the call of a key, and begins one if there is none.
func (g *Group[T]) join(ctx context.Context, key string, fresh func(context.Context) (T, bool, error),
	compute func(context.Context, mortise.Token) (T, error)) (*call[T], error) {
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

// quit takes a caller off a call. With the last one the call ends, and whoever comes later begins
// another.
func (g *Group[T]) quit(key string, c *call[T]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c.callers--; c.callers == 0 {
		g.forget(key, c)
		c.cancel(errAbandoned)
	}
}

// forget makes sure that nobody joins a call any more. Call it with mu held.
func (g *Group[T]) forget(key string, c *call[T]) {
	if g.calls[key] == c {
		delete(g.calls, key)
	}
}

// run is the goroutine of a call. It is started by the first caller and ends when the functions
// have returned, or the lock is not to be had.
func (g *Group[T]) run(ctx context.Context, key string, c *call[T]) {
	var err error
	defer func() { g.publish(key, c, because(ctx, err)) }()
	err = g.locker.Do(ctx, key, func(held context.Context, token mortise.Token) error {
		// Before the lock is released: the callers need not wait for that.
		defer func() { g.publish(key, c, c.err) }()
		c.work(held, token)
		return nil
	})
}

// publish gives the callers of a call its result, once. It also ends the context of the call: Do
// does not wait for the confirmation of the release then, which without a majority may take long.
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

// Close ends the calls that run, whose callers get an error that is ErrClosed unless their
// functions succeed nevertheless, and waits until their functions have returned. It may be called
// again.
func (g *Group[T]) Close() {
	g.mu.Lock()
	g.closed = true
	for _, c := range g.calls {
		c.cancel(ErrClosed)
	}
	g.mu.Unlock()
	g.running.Wait()
}
