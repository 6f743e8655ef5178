package locker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// refuser returns a Locker whose first calls return errs, one each, without running fn. Later
// calls lock. Each call adds one to calls.
func refuser(calls *int, errs ...error) Locker {
	var l Local
	return Func(func(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
		*calls++
		if *calls <= len(errs) {
			return errs[*calls-1]
		}
		return l.Do(ctx, key, fn)
	})
}

func retry(t *testing.T, c RetryConfig) *Retry {
	t.Helper()
	r, err := NewRetry(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRetryKnowsWhatIsTemporary(t *testing.T) {
	foreign := errors.New("foreign")
	for _, c := range []struct {
		err  error
		any  bool // whether RetryConfig.Temporary returns true for every error
		want int  // the number of calls
	}{
		{mortise.ErrNotReady, false, 2}, {&mortise.HeldError{}, false, 2}, {mortise.ErrOverloaded, false, 2},
		{mortise.ErrQueueFull, false, 2},
		{&LimitError{}, false, 2}, {fmt.Errorf("wrapped: %w", mortise.ErrQueueFull), false, 2},
		{foreign, false, 1}, {foreign, true, 2},
		{mortise.ErrLost, true, 1}, {mortise.ErrUnlocked, true, 1}, {mortise.ErrLeaving, true, 1},
		{mortise.ErrClosed, true, 1},
		{&mortise.DeadlockError{}, true, 1}, {mortise.ErrBadRequest, true, 1}, {mortise.ErrBadKey, true, 1},
		{context.Canceled, true, 1}, {context.DeadlineExceeded, true, 1}, {ErrOpen, true, 1}, {ErrWait, true, 1},
		{fmt.Errorf("%w: %w", mortise.ErrOverloaded, context.DeadlineExceeded), true, 1}, // Final wins
	} {
		synctest.Test(t, func(t *testing.T) {
			calls, ran := 0, 0
			config := RetryConfig{Locker: refuser(&calls, c.err)}
			if c.any {
				config.Temporary = func(error) bool { return true }
			}
			err := retry(t, config).Do(t.Context(), "k",
				func(context.Context, mortise.Token) error { ran++; return nil })
			if calls != c.want || ran != c.want-1 || (err == nil) != (ran == 1) ||
				err != nil && !errors.Is(err, c.err) {
				t.Errorf("%v (any %v): %d calls, want %d; the function ran %d times; returned %v", c.err, c.any,
					calls, c.want, ran, err)
			}
		})
	}
}

func TestFnRunsOnceWhateverTheLockerDoes(t *testing.T) {
	var late []work
	for name, l := range map[string]Locker{
		"error after fn": Func(func(ctx context.Context, _ string,
			fn func(context.Context, mortise.Token) error) error {
			return errors.Join(fn(ctx, 1), mortise.ErrOverloaded)
		}),
		"twice": Func(func(ctx context.Context, _ string, fn func(context.Context, mortise.Token) error) error {
			return errors.Join(fn(ctx, 1), fn(ctx, 2))
		}),
		"late": Func(func(ctx context.Context, _ string, fn func(context.Context, mortise.Token) error) error {
			late = append(late, fn)
			if len(late) < 4 {
				return mortise.ErrNotReady
			}
			return errors.Join(fn(ctx, 1), mortise.ErrNotReady)
		}),
		"fn's own error is temporary": Func(func(ctx context.Context, _ string,
			fn func(context.Context, mortise.Token) error) error {
			return errors.Join(fn(ctx, 1), mortise.ErrQueueFull)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ran := 0
				err := retry(t, RetryConfig{Locker: l}).Do(t.Context(), "k",
					func(context.Context, mortise.Token) error { ran++; return nil })
				for _, fn := range late {
					if fn(t.Context(), 9) == nil {
						t.Error("a call after the end was let in")
					}
				}
				if ran != 1 || err == nil {
					t.Errorf("the function ran %d times, and Do returned %v", ran, err)
				}
			})
		})
	}
}

func TestLockerThatRunsNothingIsFoundOut(t *testing.T) {
	silent := Func(func(context.Context, string, func(context.Context, mortise.Token) error) error { return nil })
	if err := retry(t, RetryConfig{Locker: silent}).Do(t.Context(), "k", nothing); err == nil {
		t.Error("a Locker that returned nil without running the function counts as success")
	}
}

func TestRetryPauses(t *testing.T) {
	bounds := []time.Duration{10, 20, 40, 50, 50}
	var widest, narrowest [5]time.Duration
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			var times []time.Time
			l := Func(func(context.Context, string, func(context.Context, mortise.Token) error) error {
				times = append(times, time.Now())
				return mortise.ErrOverloaded
			})
			r := retry(t, RetryConfig{Locker: l, Attempts: 6, Pause: 10 * time.Millisecond,
				MaxPause: 50 * time.Millisecond})
			if err := r.Do(t.Context(), "k", nothing); !errors.Is(err, mortise.ErrOverloaded) ||
				!strings.Contains(err.Error(), "6 attempt(s)") {
				t.Errorf("returned %v", err)
			}
			if len(times) != 6 {
				t.Fatalf("%d attempts, want 6", len(times))
			}
			for i := range bounds {
				pause := times[i+1].Sub(times[i])
				if pause > bounds[i]*time.Millisecond {
					t.Errorf("pause %d is %v, longer than %v", i+1, pause, bounds[i]*time.Millisecond)
				}
				widest[i] = max(widest[i], pause)
				if narrowest[i] == 0 || pause < narrowest[i] {
					narrowest[i] = pause
				}
			}
		})
	}
	for i := range bounds {
		if widest[i] < bounds[i]*time.Millisecond*8/10 || narrowest[i] > bounds[i]*time.Millisecond*2/10 {
			t.Errorf("200 pauses below %v lie between %v and %v: they are not spread", bounds[i]*time.Millisecond,
				narrowest[i], widest[i])
		}
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		always := Func(func(context.Context, string, func(context.Context, mortise.Token) error) error {
			calls++
			return mortise.ErrOverloaded
		})
		r := retry(t, RetryConfig{Locker: always, Attempts: 1000, Pause: time.Hour})
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("no more time"))
		defer cancel()
		began := time.Now()
		err := r.Do(ctx, "k", nothing)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, mortise.ErrOverloaded) ||
			!strings.Contains(err.Error(), "no more time") {
			t.Errorf("returned %v", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("took %v, want the context's second", took)
		}
	})
}

func TestWrappersPutTheToken(t *testing.T) {
	plain := Func(func(ctx context.Context, _ string, fn func(context.Context, mortise.Token) error) error {
		return fn(ctx, 5)
	})
	outer := mortise.ContextWithToken(t.Context(), 3)
	err := retry(t, RetryConfig{Locker: plain}).Do(outer, "k", func(ctx context.Context, token mortise.Token) error {
		if found, ok := mortise.TokenFrom(ctx); !ok || found != token || token != 5 {
			t.Errorf("token %d, in the context %d, %v", token, found, ok)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
