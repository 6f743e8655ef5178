package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mortise-lock/mortise"
)

// errExited is the result of a call whose function ended its goroutine.
var errExited = errors.New("flight: the function ended its goroutine")

// call is one run of the functions, and those who wait for it.
type call[T any] struct {
	fresh   func(context.Context) (T, bool, error)
	compute func(context.Context, mortise.Token) (T, error)
	cancel  context.CancelCauseFunc
	callers int  // that have not given up; guarded by the group's mu
	over    bool // done is closed; guarded by the group's mu

	done     chan struct{}
	value    T // these are set before done is closed
	err      error
	panicked *PanicError
}

// PanicError is what a caller panics with when a function has panicked in the goroutine of the
// call. All callers get the same one.
type PanicError struct {
	Value any    // what the function panicked with
	Stack []byte // of the goroutine of the call, as runtime/debug.Stack has it
}

func (p *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns what the function panicked with, if that was an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// outcome gives a caller the result.
func (c *call[T]) outcome() (T, error) {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.value, c.err
}

// work runs the functions under the lock and keeps what comes of it, also if they panic or end the
// goroutine.
func (c *call[T]) work(ctx context.Context, token mortise.Token) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	c.err = errExited // unless they return
	value, err := c.find(ctx, token)
	if err != nil {
		c.err = because(ctx, err)
		return
	}
	c.value, c.err = value, nil
}

func (c *call[T]) find(ctx context.Context, token mortise.Token) (T, error) {
	value, found, err := c.fresh(ctx)
	if err != nil || found {
		return value, err
	}
	if ctx.Err() != nil { // somebody else may compute by now
		return value, context.Cause(ctx)
	}
	return c.compute(ctx, token)
}

// because adds to an error why the context of the call has ended, if it has: "context canceled"
// alone would look to a caller as if it were about its own.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
