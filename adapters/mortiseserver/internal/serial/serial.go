// Package serial runs a function under a lock for as long as a caller may wait, and sorts the
// reasons why it did not run. It is what packages httplock and grpclock share.
//
// # Guarantees
//
// The function runs at most once, and only while the lock is held. Its context ends with the lock.
// After Do the lock is released.
//
// # Concurrency
//
// Do is safe for concurrent use.
//
// # Failure
//
// A panic in the function releases the lock and continues.
package serial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// Node is the part of *mortise.Node that is used.
type Node interface {
	Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error)
	Status() mortise.Status
}

// Reason is why a function did not run, or not to its end under the lock.
type Reason int

// The reasons. Ran is the zero value.
const (
	Ran     Reason = iota
	Cut            // it ran, and the lock was lost or the node began to leave before it returned
	Busy           // the lock is held, or too many requests wait for it
	Away           // the group cannot grant it now
	Ended          // the context of the caller has ended
	BadKey         // the key is not valid
	Mistake        // the request is not valid or not allowed
)

const (
	releaseTime = 5 * time.Second // for the confirmation of a release
	checkEvery  = time.Second     // how often a waiting call checks that the node has a lease
)

var (
	errWaited = errors.New("the lock was not free in time")
	errAway   = errors.New("the node has lost its lease: it cannot reach the group")
)

// Do acquires the lock, waits for it for at most maxWait unless that is zero, and calls fn. It
// returns Ran with a nil error if fn has returned under the lock, and otherwise the reason and an
// error. Ran with an error means that the release was not confirmed.
func Do(ctx context.Context, node Node, r mortise.Request, maxWait time.Duration, fn func(ctx context.Context)) (
	Reason, error) {
	lock, err := acquire(ctx, node, r, maxWait)
	if err != nil {
		return reason(ctx, err), err
	}
	return run(ctx, lock, fn)
}

func run(ctx context.Context, lock *mortise.Lock, fn func(ctx context.Context)) (why Reason, err error) {
	within, cancel := context.WithCancel(ctx) // so that the goroutine of the lock's context ends
	defer cancel()
	held := lock.Context(within)
	defer func() {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		if err = lock.Unlock(limited); err != nil {
			err = fmt.Errorf("unlock %q: %w", lock.Key(), err)
		}
		if errors.Is(err, mortise.ErrLost) {
			why = Cut
		}
	}()
	fn(held)
	if held.Err() != nil && ctx.Err() == nil {
		why = Cut
	}
	return why, nil
}

func acquire(ctx context.Context, node Node, r mortise.Request, maxWait time.Duration) (*mortise.Lock, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if maxWait > 0 {
		defer time.AfterFunc(maxWait, func() { stop(errWaited) }).Stop()
	}
	checked := make(chan struct{})
	defer func() { stop(nil); <-checked }()
	go func() {
		defer close(checked)
		for tick := time.NewTicker(checkEvery); ; {
			select {
			case <-waiting.Done():
				tick.Stop()
				return
			case <-tick.C:
				if node.Status().Lease == mortise.LeaseLost {
					stop(errAway)
				}
			}
		}
	}()
	lock, err := node.Acquire(waiting, r)
	if cause := context.Cause(waiting); err != nil && (cause == errWaited || cause == errAway) {
		ended := context.Canceled.Error() + ": " + cause.Error()
		return nil, &endError{cause, strings.Replace(err.Error(), ended, cause.Error(), 1)}
	}
	return lock, err
}

// endError is the end of a wait. It has the text of mortise with the reason in the place of its
// context, which the caller does not know. It wraps no error of a context: that of the caller has
// not ended.
type endError struct {
	reason error
	text   string
}

func (e *endError) Error() string        { return e.text }
func (e *endError) Is(target error) bool { return target == e.reason }

func reason(ctx context.Context, err error) Reason {
	switch {
	case errors.Is(err, errWaited), errors.Is(err, mortise.ErrHeld), errors.Is(err, mortise.ErrQueueFull):
		return Busy
	case errors.Is(err, errAway), errors.Is(err, mortise.ErrNotReady), errors.Is(err, mortise.ErrOverloaded),
		errors.Is(err, mortise.ErrNoRoom), errors.Is(err, mortise.ErrLeaving), errors.Is(err, mortise.ErrClosed),
		errors.Is(err, mortise.ErrInJeopardy):
		return Away
	case ctx.Err() != nil:
		return Ended
	case errors.Is(err, mortise.ErrBadKey):
		return BadKey
	}
	return Mistake
}
