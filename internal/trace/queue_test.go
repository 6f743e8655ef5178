package trace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/session/client"
)

// queued runs a test in fake time with a queue, and with what the queue has logged.
func queued(t *testing.T, test func(t *testing.T, q *hookQueue, logged func() int)) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		logged := func() int { return strings.Count(log.String(), "Config.Hooks") }
		test(t, &hookQueue{logger: slog.New(slog.NewTextHandler(&log, nil)), clock: clock.Monotonic()}, logged)
	})
}

func TestHooksAreCalledInOrder(t *testing.T) {
	queued(t, func(t *testing.T, q *hookQueue, logged func() int) {
		var called []int
		for round := range 2 {
			for i := range MostWaiting {
				q.later(func() {
					called = append(called, i)
					if i == 3 {
						runtime.Goexit()
					}
				})
			}
			synctest.Wait()
			if len(called) != (round+1)*MostWaiting || !slices.IsSorted(called[round*MostWaiting:]) {
				t.Fatalf("round %d: %d calls", round, len(called))
			}
		}
		if q.lost() != 0 || logged() != 0 {
			t.Errorf("%d are dropped, %d lines", q.lost(), logged())
		}
	})
}

// What does not fit is counted, and one line a minute tells it.
func TestSlowHooksAreTold(t *testing.T) {
	queued(t, func(t *testing.T, q *hookQueue, logged func() int) {
		overfill := func(extra int) {
			goOn := make(chan struct{})
			q.later(func() { <-goOn })
			synctest.Wait()
			for range MostWaiting + extra {
				q.later(func() {})
			}
			close(goOn)
			synctest.Wait()
		}
		for i, c := range []struct {
			wait    time.Duration
			extra   int
			dropped uint64
			lines   int
		}{{0, 0, 0, 0}, {0, 3, 3, 1}, {time.Minute - 1, 2, 5, 1}, {1, 0, 5, 2}, {time.Hour, 0, 5, 2}, {0, 1, 6, 3}} {
			time.Sleep(c.wait)
			if overfill(c.extra); q.lost() != c.dropped || logged() != c.lines {
				t.Errorf("step %d: %d are dropped, %d lines, want %d, %d", i, q.lost(), logged(), c.dropped, c.lines)
			}
		}
	})
}

func TestAPanicOfAHookIsTold(t *testing.T) {
	queued(t, func(t *testing.T, q *hookQueue, logged func() int) {
		for i, c := range []struct {
			wait  time.Duration
			lines int
		}{{0, 1}, {time.Minute - 1, 1}, {1, 2}} {
			time.Sleep(c.wait)
			called := false
			q.later(func() { panic("x") })
			q.later(func() { called = true })
			q.call(func() { panic("on the caller's goroutine") })
			if synctest.Wait(); !called || logged() != c.lines {
				t.Errorf("step %d: called %v, %d lines, want %d", i, called, logged(), c.lines)
			}
		}
	})
}

// Close waits for what is queued, but not for a hook that hangs, and nothing is called afterwards.
func TestCloseWaitsForHooks(t *testing.T) {
	for _, takes := range []time.Duration{0, CloseLimit - 1, time.Hour} {
		queued(t, func(t *testing.T, q *hookQueue, _ func() int) {
			hangs, calls, began := takes > CloseLimit, atomic.Int64{}, time.Now()
			if takes > 0 {
				q.later(func() { time.Sleep(takes); calls.Add(1) })
				q.later(func() { calls.Add(1) })
			}
			for range 2 {
				err := q.close()
				if took := time.Since(began); errors.Is(err, ErrHangs) != hangs || !hangs && took != takes ||
					hangs && took != CloseLimit {
					t.Errorf("a hook takes %v: %v after %v", takes, err, took)
				}
				began = began.Add(CloseLimit)
				if !hangs {
					began = time.Now().Add(-takes)
				}
			}
			q.later(func() { calls.Add(10) })
			time.Sleep(2 * time.Hour)
			want := map[time.Duration]int64{0: 0, CloseLimit - 1: 2, time.Hour: 1}[takes]
			if got := calls.Load(); got != want {
				t.Errorf("a hook takes %v: %d calls, want %d", takes, got, want)
			}
		})
	}
}

// How a release ends goes by its error first, and then by the way of the release.
func TestHowAReleaseEnds(t *testing.T) {
	last := Release{Last: true}
	for _, c := range []struct {
		r    Release
		err  error
		want End
	}{
		{last, nil, Confirmed}, {Release{Last: true, Way: UnlockSoon}, nil, Soon},
		{Release{Last: true, Way: Detach}, nil, Detached}, {Release{Last: true, Way: Lapse}, nil, Detached},
		{Release{}, nil, Left}, {last, client.ErrLost, Gone}, {Release{}, client.ErrLost, Gone},
		{Release{Last: true, doubted: true}, client.ErrLost, Unconfirmed}, {Release{doubted: true}, nil, Left},
		{Release{}, client.ErrInJeopardy, Left}, {last, client.ErrClosed, Stopped}, {last, client.ErrNoRoom, Confirmed},
		{last, context.Canceled, Unconfirmed},
	} {
		if got := c.r.end(fmt.Errorf("%w", c.err)); c.err != nil && got != c.want {
			t.Errorf("%+v, %v: %d, want %d", c.r, c.err, got, c.want)
		}
		if got := c.r.end(nil); c.err == nil && got != c.want {
			t.Errorf("%+v: %d, want %d", c.r, got, c.want)
		}
	}
}

func TestHooksThatListen(t *testing.T) {
	event := func(Event) {}
	for name, h := range map[string]Hooks{
		"Mark":     {Mark: func(context.Context) []byte { return nil }},
		"Acquired": {Acquired: func(context.Context, Event) any { return nil }},
		"Unlocked": {Unlocked: func(context.Context, Event) {}},
		"Lost":     {Lost: event}, "InDoubt": {InDoubt: event}, "Leaked": {Leaked: event},
	} {
		if tracer := New(Config{Hooks: h}); !tracer.Observes() || tracer.FindsLeaks() != (name == "Leaked") {
			t.Errorf("%s: %+v", name, tracer)
		}
	}
	if tracer := New(Config{Queued: true}); tracer == nil || tracer.Observes() {
		t.Error("without hooks for locks")
	}
}
