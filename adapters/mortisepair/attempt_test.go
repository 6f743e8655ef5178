package mortisepair

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/locker"
)

// TestAttempts compares the whole result of an attempt for each way in which a Locker may behave,
// without a limit, with one, and for a caller whose context ends before, at or after that.
func TestAttempts(t *testing.T) {
	type doing = func(ctx context.Context, fn func(context.Context, locker.Token) error) error
	down := errors.New("down")
	waits := func(ctx context.Context, _ func(context.Context, locker.Token) error) error {
		<-ctx.Done()
		return fmt.Errorf("it waited: %w", context.Cause(ctx))
	}
	twice := func(ctx context.Context, fn func(context.Context, locker.Token) error) error {
		return errors.Join(fn(ctx, 3), fn(ctx, 3))
	}
	const second = "mortisepair: the Locker ran the function a second time, or after its caller had given up"
	for _, c := range []struct {
		what        string
		wait, until time.Duration // until is when the context of the caller ends; zero means never
		do          doing
		began, runs int
		text        string
		is          error
		after       time.Duration
	}{
		{what: "runs", do: func(ctx context.Context, fn func(context.Context, locker.Token) error) error {
			return fn(ctx, 3)
		}, began: 1, runs: 1, text: "<nil>"},
		{what: "runs long", wait: 1, do: func(ctx context.Context, fn func(context.Context, locker.Token) error) error {
			err := fn(ctx, 3)
			time.Sleep(time.Hour)
			return errors.Join(err, ctx.Err())
		}, began: 1, runs: 1, text: "<nil>", after: time.Hour},
		{what: "runs and fails", do: func(ctx context.Context, fn func(context.Context, locker.Token) error) error {
			_ = fn(ctx, 3)
			return down
		}, began: 1, runs: 1, text: "down", is: down},
		{what: "runs twice", do: twice, began: 1, runs: 1, text: second},
		{what: "fails", do: func(context.Context, func(context.Context, locker.Token) error) error { return down },
			text: "down", is: down},
		{what: "does nothing", do: func(context.Context, func(context.Context, locker.Token) error) error { return nil },
			text: `mortisepair: lock "k": the Locker returned nil without running the function`},
		{what: "waits, with a limit", wait: time.Second, do: waits, is: ErrWait, after: time.Second,
			text: ErrWait.Error() + `: lock "k", limit 1s: it waited: ` + ErrWait.Error()},
		{what: "returns nil after the limit", wait: time.Second, is: ErrWait, after: time.Second,
			do: func(ctx context.Context, _ func(context.Context, locker.Token) error) error {
				<-ctx.Done()
				return nil
			}, text: ErrWait.Error() + `: lock "k", limit 1s: <nil>`},
		{what: "runs after the limit", wait: time.Second, is: ErrWait, after: time.Second,
			do: func(ctx context.Context, fn func(context.Context, locker.Token) error) error {
				<-ctx.Done()
				return fn(ctx, 3)
			}, text: ErrWait.Error() + `: lock "k", limit 1s: ` + second},
		{what: "waits, and the caller goes", until: time.Second, do: waits, is: context.DeadlineExceeded,
			after: time.Second, text: "it waited: context deadline exceeded"},
		{what: "waits, and the caller goes before the limit", wait: 2 * time.Second, until: time.Second, do: waits,
			is: context.DeadlineExceeded, after: time.Second, text: "it waited: context deadline exceeded"},
		{what: "is late after the limit, and the caller goes", wait: time.Second, until: 2 * time.Second,
			do: func(context.Context, func(context.Context, locker.Token) error) error {
				time.Sleep(3 * time.Second)
				return down
			}, is: context.DeadlineExceeded, after: 3 * time.Second,
			text: `mortisepair: lock "k": context deadline exceeded`},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := via(t.Context(), Primary)
			if c.until > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.until)
				defer cancel()
			}
			var given context.Context
			var run func(context.Context, locker.Token) error
			runs, begin := 0, time.Now()
			began, err := (&attempt{wait: c.wait}).do(ctx, locker.Func(func(ctx context.Context, key string,
				fn func(context.Context, locker.Token) error) error {
				if given, run = ctx, fn; key != "k" || len(Via(ctx)) > 0 {
					t.Errorf("%s: key %q, via %q", c.what, key, Via(ctx))
				}
				return c.do(ctx, fn)
			}), "k", func(ctx context.Context, token locker.Token) error {
				if found, _ := locker.TokenFrom(ctx); token != 3 || found != 3 {
					t.Errorf("%s: token %d, in the context %d", c.what, token, found)
				}
				runs++
				return nil
			})
			if took := time.Since(begin); began != (c.began == 1) || runs != c.runs || fmt.Sprint(err) != c.text ||
				c.is != nil && !errors.Is(err, c.is) || took != c.after {
				t.Errorf("%s: began %v, %d runs, %v after %v; want %v, %d, %s after %v", c.what, began, runs, err, took,
					c.began, c.runs, c.text, c.after)
			}
			if c.wait > 0 && given.Err() == nil {
				t.Errorf("%s: the context of the Locker goes on", c.what)
			}
			if err := run(ctx, 3); err == nil || err.Error() != second || runs != c.runs {
				t.Errorf("%s: run later: %v, %d runs", c.what, err, runs)
			}
		})
	}
}

// TestTheErrorOfAnEndedContext has the cause beside the error if it is another one.
func TestTheErrorOfAnEndedContext(t *testing.T) {
	own := errors.New("own")
	for cause, want := range map[error]string{own: "context canceled: own", context.Canceled: "context canceled",
		nil: "context canceled"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		if err := ended(ctx); err.Error() != want || !errors.Is(err, context.Canceled) ||
			cause != nil && !errors.Is(err, cause) {
			t.Errorf("cause %v: %v, want %s", cause, err, want)
		}
	}
}

// TestWhichErrorsCount tries each error of a Locker: whether it counts for a Breaker.
func TestWhichErrorsCount(t *testing.T) {
	rows := map[string]struct {
		err    error
		counts bool
	}{
		"ErrBadKey": {locker.ErrBadKey, false}, "ErrBadRequest": {locker.ErrBadRequest, false},
		"ErrLeaving": {locker.ErrLeaving, false}, "ErrClosed": {locker.ErrClosed, false},
		"ErrHeld": {locker.ErrHeld, false}, "ErrOverloaded": {locker.ErrOverloaded, false},
		"ErrQueueFull": {locker.ErrQueueFull, false}, "ErrNoRoom": {locker.ErrNoRoom, false},
		"ErrDeadlock": {locker.ErrDeadlock, false}, "ErrUnsupported": {locker.ErrUnsupported, false},
		"ErrNotReady": {locker.ErrNotReady, true}, "ErrLost": {locker.ErrLost, true},
		"ErrInJeopardy": {locker.ErrInJeopardy, true}, "ErrUnlocked": {locker.ErrUnlocked, true},
		"ErrNotAllowed": {locker.ErrNotAllowed, true},
	}
	text, err := os.ReadFile("../../locker/errors.go")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^\t(Err\w+) = `).FindAllStringSubmatch(string(text), -1)
	if len(names) < 10 {
		t.Fatalf("found only %v", names)
	}
	for _, name := range names {
		row, is := rows[name[1]]
		if !is {
			t.Errorf("locker.%s has no row", name[1])
			continue
		}
		b, err := NewBreaker(BreakerConfig{Locker: failing(fmt.Errorf("so: %w", row.err)), Wait: time.Second,
			Failures: 1})
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Do(t.Context(), "k", nothing); !errors.Is(err, row.err) || (b.State() == Open) != row.counts {
			t.Errorf("%s: %v, and then the state is %v", name[1], err, b.State())
		}
	}
}
