package mortisepair

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

// ErrWait means that the wait limit of a Breaker or a Both passed before the lock was granted. fn
// did not run, and nothing is held.
var ErrWait = errors.New("mortisepair: not locked within the wait limit")

// attempt is one call of Do of a Locker. fn begins at most once, never after the wait limit and
// never after Do has returned. So if fn did not begin, the caller may call another Locker.
type attempt struct {
	wait  time.Duration // the time within which fn must begin; zero means no limit besides ctx
	admit func()        // called once, just before fn; may be nil
	phase atomic.Int32
}

// The phases of an attempt. The first phase is waiting. It changes once, to begun, expired or
// over.
const (
	waiting = iota
	begun   // fn is running or has run
	expired // the wait limit has passed
	over    // Do has returned while the phase was waiting
)

// do reports whether fn has begun. If fn has not begun, err is not nil.
func (a *attempt) do(ctx context.Context, l locker.Locker, key string,
	fn func(context.Context, locker.Token) error) (began bool, err error) {
	limited, stop := a.limit(noVia(ctx))
	defer stop()
	err = l.Do(limited, key, func(ctx context.Context, token locker.Token) error {
		if !a.phase.CompareAndSwap(waiting, begun) {
			return errors.New("mortisepair: the Locker ran the function a second time, or after its caller had given up")
		}
		if a.admit != nil {
			a.admit()
		}
		// Without a token in ctx, TokenFrom would return the token of an outer lock.
		if found, ok := locker.TokenFrom(ctx); !ok || found != token {
			ctx = locker.ContextWithToken(ctx, token)
		}
		return fn(ctx, token)
	})
	return a.settle(ctx, key, err)
}

// limit returns a context that ends if the wait limit passes before fn has begun.
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

func (a *attempt) settle(ctx context.Context, key string, err error) (began bool, _ error) {
	a.phase.CompareAndSwap(waiting, over)
	phase := a.phase.Load()
	switch {
	case phase == begun:
		return true, err
	case phase == expired && ctx.Err() != nil: // the caller's context has ended, too: report that
		return false, fmt.Errorf("mortisepair: lock %q: %w", key, ended(ctx))
	case phase == expired:
		// Do not wrap err, because it may be the error of a context that the caller did not make.
		return false, fmt.Errorf("%w: lock %q, limit %v: %v", ErrWait, key, a.wait, err)
	case err == nil:
		return false, fmt.Errorf("mortisepair: lock %q: the Locker returned nil without running the function", key)
	}
	return false, err
}

// ended returns an error that wraps the error and the cause of ctx, which has ended.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}
