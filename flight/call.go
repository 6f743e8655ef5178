package flight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/mortise-lock/mortise/locker"
)

var errExited = errors.New("flight: the function ended its goroutine (runtime.Goexit)")

// call is one run of the two functions. All callers that wait for the call share its result.
type call[T any] struct {
	fresh   func(context.Context) (T, bool, error)
	compute func(context.Context, locker.Token) (T, error)
	cancel  context.CancelCauseFunc
	callers int  // number of waiting callers; guarded by the group's mu
	over    bool // done is closed; guarded by the group's mu

	done     chan struct{}
	value    T // value, err and panicked are set before done is closed
	err      error
	panicked *PanicError
}

// PanicError is the value with which Do panics in every caller if a function has panicked. All
// callers get the same pointer.
type PanicError struct {
	Value any
	Stack []byte // stack of the call's goroutine, from runtime/debug.Stack
}

func (p *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Unwrap returns the value of the panic if the value is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

func (c *call[T]) outcome() (T, error) {
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.value, c.err
}

// work runs the functions under the lock and stores the result. It stores an error if a function
// calls runtime.Goexit, and recovers if a function panics.
func (c *call[T]) work(ctx context.Context, token locker.Token) {
	defer func() {
		if v := recover(); v != nil {
			c.panicked = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	c.err = errExited // replaced if the functions return
	value, err := c.find(ctx, token)
	if err != nil {
		c.err = causeText(ctx, err)
		return
	}
	c.value, c.err = value, nil
}

func (c *call[T]) find(ctx context.Context, token locker.Token) (T, error) {
	value, found, err := c.fresh(ctx)
	if err != nil || found {
		return value, err
	}
	if ctx.Err() != nil { // the lock may be lost, and another instance may compute
		return value, context.Cause(ctx)
	}
	return c.compute(ctx, token)
}

// causeText adds to err the reason why the call's context has ended. Without the reason, the caller
// could mistake "context canceled" for the end of its own context.
func causeText(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}
