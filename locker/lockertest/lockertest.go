// Package lockertest checks the contract of locker.Locker, for wrappers, adapters of other lock
// services, and fakes.
//
//	func TestMyLocker(t *testing.T) {
//		lockertest.Run(t, func(t *testing.T) locker.Locker { return newMyLocker(t) })
//	}
//
// # Guarantees
//
// A Locker that passes the checks runs fn once and returns the error of fn. It excludes callers
// of the same key, but not callers of different keys. Its tokens rise, and [locker.TokenFrom]
// returns them. When the context of a waiting call ends, the call returns and holds nothing. Bad
// keys are refused. If fn panics or calls runtime.Goexit, the lock is released.
//
// # Concurrency
//
// The checks run one after the other. Each uses its own Locker, from several goroutines. Run may be
// called in a synctest bubble.
//
// # Failure
//
// If a Locker never grants a lock, the test fails after ten seconds, when the context ends. If a
// Locker ignores contexts, the test blocks until its timeout.
//
// # Limits
//
// Run does not check the order of waiters, the end of fn's context when the lock is lost, a lock
// that is entered again, or the tokens after a restart.
package lockertest

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

// Run checks a Locker in subtests. For each subtest, fresh returns a Locker that has no other
// users. All keys begin with "lockertest/". Run takes much less than a second, in addition to the
// time of the Locker.
func Run(t *testing.T, fresh func(t *testing.T) locker.Locker) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			c.check(t, ctx, fresh(t))
		})
	}
}

type check struct {
	name  string
	check func(testing.TB, context.Context, locker.Locker)
}

func checks() []check {
	return []check{
		{"RunsOnce", runsOnce},
		{"Excludes", excludes},
		{"KeysAreApart", keysAreApart},
		{"TokensRise", tokensRise},
		{"ContextIsChild", contextIsChild},
		{"EndedContext", endedContext},
		{"GivesUp", givesUp},
		{"BadKeys", badKeys},
		{"Panic", panics},
		{"Goexit", exits},
	}
}

func do(t testing.TB, ctx context.Context, l locker.Locker, key string, fn func(context.Context, locker.Token)) {
	t.Helper()
	ran := 0
	err := l.Do(ctx, key, func(ctx context.Context, token locker.Token) error {
		ran++
		fn(ctx, token)
		return nil
	})
	if err != nil || ran != 1 {
		t.Errorf("Do(%q) returned %v and ran the function %d times, want no error and once", key, err, ran)
	}
}

func runsOnce(t testing.TB, ctx context.Context, l locker.Locker) {
	do(t, ctx, l, "lockertest/a", func(context.Context, locker.Token) {})
	own, ran := errors.New("the function's own error"), 0
	err := l.Do(ctx, "lockertest/a", func(context.Context, locker.Token) error { ran++; return own })
	if !errors.Is(err, own) || ran != 1 {
		t.Errorf("Do returned %v and ran the function %d times, want its error and once", err, ran)
	}
}

func excludes(t testing.TB, ctx context.Context, l locker.Locker) {
	var all sync.WaitGroup
	counter := 0 // not guarded by a mutex, so that the race detector reports a missing exclusion
	for range 8 {
		all.Go(func() {
			for range 5 {
				do(t, ctx, l, "lockertest/one", func(context.Context, locker.Token) { counter++ })
			}
		})
	}
	all.Wait()
	if counter != 40 {
		t.Errorf("40 increments under one lock gave %d", counter)
	}
}

func keysAreApart(t testing.TB, ctx context.Context, l locker.Locker) {
	do(t, ctx, l, "lockertest/outer", func(context.Context, locker.Token) { // uses the outer ctx, as givesUp does
		do(t, ctx, l, "lockertest/inner", func(context.Context, locker.Token) {})
	})
}

func tokensRise(t testing.TB, ctx context.Context, l locker.Locker) {
	var last locker.Token
	for range 20 {
		do(t, ctx, l, "lockertest/one", func(ctx context.Context, token locker.Token) {
			if token <= last {
				t.Errorf("token %d comes after %d", token, last)
			}
			if found, ok := locker.TokenFrom(ctx); !ok || found != token {
				t.Errorf("TokenFrom finds %d, %v in a context of token %d: put it there with locker.ContextWithToken",
					found, ok, token)
			}
			last = token
		})
		do(t, ctx, l, "lockertest/other", func(context.Context, locker.Token) {})
	}
}

func contextIsChild(t testing.TB, ctx context.Context, l locker.Locker) {
	type mark struct{}
	parent, cancel := context.WithCancel(context.WithValue(ctx, mark{}, "here"))
	defer cancel()
	err := l.Do(parent, "lockertest/one", func(ctx context.Context, _ locker.Token) error {
		if ctx.Value(mark{}) != "here" {
			t.Error("the context of the function does not have the caller's values")
		}
		if ctx.Err() != nil {
			t.Errorf("the context has ended under the lock: %v", context.Cause(ctx))
		}
		cancel()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(10 * time.Second):
			t.Error("the context of the function does not end with the caller's")
			return nil
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Do returned %v, want what the function returned", err)
	}
	do(t, ctx, l, "lockertest/one", func(context.Context, locker.Token) {}) // must be free
}

func endedContext(t testing.TB, ctx context.Context, l locker.Locker) {
	over, cancel := context.WithCancel(ctx)
	cancel()
	err := l.Do(over, "lockertest/one", func(context.Context, locker.Token) error {
		t.Error("the function ran under a context that had ended before")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Do returned %v, want an error that wraps the context's", err)
	}
}

func givesUp(t testing.TB, ctx context.Context, l locker.Locker) {
	// The inner call uses ctx, because the context of fn could enter the lock again.
	do(t, ctx, l, "lockertest/one", func(context.Context, locker.Token) {
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		err := l.Do(short, "lockertest/one", func(context.Context, locker.Token) error {
			t.Error("a second caller was let in")
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Do returned %v, want an error that wraps the context's", err)
		}
	})
	do(t, ctx, l, "lockertest/one", func(context.Context, locker.Token) {}) // must be free
}

func badKeys(t testing.TB, ctx context.Context, l locker.Locker) {
	for _, key := range [...]string{"", "lockertest/\x00", "lockertest/\x7f", "lockertest/\u0085", "lockertest/\xff",
		"lockertest/" + strings.Repeat("k", 502)} {
		err := l.Do(ctx, key, func(context.Context, locker.Token) error {
			t.Errorf("the function ran under the key %q", key)
			return nil
		})
		if !errors.Is(err, locker.ErrBadKey) {
			t.Errorf("Do(%q) returned %v, want an error that is locker.ErrBadKey", key, err)
		}
	}
	for _, key := range [...]string{"lockertest/ключ", "lockertest/" + strings.Repeat("k", 501)} {
		do(t, ctx, l, key, func(context.Context, locker.Token) {})
	}
}

func panics(t testing.TB, ctx context.Context, l locker.Locker) {
	func() {
		defer func() {
			if r := recover(); r != "lockertest" {
				t.Errorf("a panic came out of Do as %v, want it as it was", r)
			}
		}()
		_ = l.Do(ctx, "lockertest/one", func(context.Context, locker.Token) error { panic("lockertest") })
		t.Error("Do returned although the function had panicked")
	}()
	do(t, ctx, l, "lockertest/one", func(context.Context, locker.Token) {})
}

func exits(t testing.TB, ctx context.Context, l locker.Locker) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = l.Do(ctx, "lockertest/one", func(context.Context, locker.Token) error { runtime.Goexit(); return nil })
		t.Error("Do returned although the function had ended its goroutine")
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		t.Error("Do goes on after the function has ended its goroutine")
	}
	do(t, ctx, l, "lockertest/one", func(context.Context, locker.Token) {})
}
