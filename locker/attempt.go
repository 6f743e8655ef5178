package locker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise"
)

// ErrWait means that a wrapper gave up waiting for a lock by its own limit: fn did not run, and
// nothing is held.
var ErrWait = errors.New("locker: not locked within the wait limit")

// attempt is one call of Do of a Locker, and alone knows whether fn has begun. fn begins at most
// once, never after the wait limit has passed and never after Do has returned. So if fn did not
// begin, the caller may try elsewhere.
type attempt struct {
	wait  time.Duration // how long fn may take to begin; zero means as long as ctx allows
	admit func() error  // called once, when fn is about to begin; an error refuses it; may be nil
	phase atomic.Int32
}

// An attempt leaves waiting once.
const (
	waiting = iota
	begun   // fn runs, or has run
	refused // admit refused fn
	expired // the wait limit has passed
	over    // Do has returned without any of these
)

// do calls l.Do, and reports whether fn has begun. If not, err is not nil.
func (a *attempt) do(ctx context.Context, l Locker, key string,
	fn func(context.Context, mortise.Token) error) (began bool, err error) {
	limited, stop := a.limit(noVia(ctx))
	defer stop()
	err = l.Do(limited, key, func(ctx context.Context, token mortise.Token) error {
		if !a.phase.CompareAndSwap(waiting, begun) {
			return errors.New("locker: the Locker ran the function a second time, or after its caller had given up")
		}
		if a.admit != nil {
			if err := a.admit(); err != nil {
				a.phase.Store(refused)
				return err
			}
		}
		// If the Locker puts no token there, TokenFrom would find an outer lock's.
		if found, ok := mortise.TokenFrom(ctx); !ok || found != token {
			ctx = mortise.ContextWithToken(ctx, token)
		}
		return fn(ctx, token)
	})
	return a.settle(ctx, key, err)
}

// limit returns a context that ends when the wait limit passes before fn has begun. Once fn has
// begun it ends only with ctx or stop.
func (a *attempt) limit(ctx context.Context) (limited context.Context, stop func()) {
	if a.wait == 0 {
		return ctx, func() {}
	}
	limited, end := context.WithCancelCause(ctx)
	timer := time.AfterFunc(a.wait, func() {
		if a.phase.CompareAndSwap(waiting, expired) {
			end(ErrWait)
		}
	})
	return limited, func() { timer.Stop(); end(nil) }
}

// settle ends the attempt, so that a late call of the Locker is refused, and returns the outcome.
func (a *attempt) settle(ctx context.Context, key string, err error) (began bool, _ error) {
	a.phase.CompareAndSwap(waiting, over)
	phase := a.phase.Load()
	switch {
	case phase == begun:
		return true, err
	case phase == expired && ctx.Err() != nil: // both at once: report the caller's own limit
		return false, fmt.Errorf("locker: lock %q: %w", key, ended(ctx))
	case phase == expired:
		// Not %w: err is about a context that is not the caller's.
		return false, fmt.Errorf("%w: lock %q, %v: %v", ErrWait, key, a.wait, err)
	case err == nil:
		return false, fmt.Errorf("locker: lock %q: the Locker returned nil without running the function", key)
	}
	return false, err
}
