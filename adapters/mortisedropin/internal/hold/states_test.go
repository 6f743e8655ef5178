package hold

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// The states of a Hold. A held one may have a limit.
const (
	held = iota
	expired
	released
	lost
)

// outcome is what a call of a method does.
type outcome struct {
	err   error
	after int           // the state
	left  time.Duration // until the end of the limit, if there is one
	later int           // the state 90 s later
}

// ended returns the outcomes of all methods of a Hold that has ended.
func ended(err error, state int, left time.Duration) map[string]outcome {
	all := map[string]outcome{}
	for method := range calls() {
		all[method] = outcome{err, state, left, state}
	}
	return all
}

func calls() map[string]func(h *Hold) error {
	release := func(h *Hold) error { return h.Release(context.Background()) }
	return map[string]func(h *Hold) error{
		"Err":                      (*Hold).Err,
		"fire":                     func(h *Hold) error { h.fire(); return h.Err() },
		"Extend":                   func(h *Hold) error { return h.Extend(time.Minute) },
		"Extend by zero":           func(h *Hold) error { return h.Extend(0) },
		"Extend by less than zero": func(h *Hold) error { return h.Extend(-1) },
		"Extend twice":             func(h *Hold) error { _ = h.Extend(2 * time.Hour); return h.Extend(time.Minute) },
		"Release":                  release,
		"Release, ended context": func(h *Hold) error {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			return h.Release(ctx)
		},
		"Release twice": func(h *Hold) error { _ = release(h); return release(h) },
	}
}

// TestEachMethodInEachState calls each method of a Hold in each state, and compares its result, the
// state after it, and whether the lock is free for others, at once and 90 s later.
func TestEachMethodInEachState(t *testing.T) {
	reasons := []error{nil, ErrExpired, mortise.ErrUnlocked, mortise.ErrLost}
	minute := time.Minute
	// A limit that has passed or was not renewed stays known.
	states := map[string]struct {
		limit   time.Duration
		begin   func(c *mortisetest.Cluster, h *Hold)
		methods map[string]outcome
	}{
		"held without a limit": {0, func(*mortisetest.Cluster, *Hold) {}, map[string]outcome{
			"Err": {nil, held, 0, held}, "Extend": {nil, held, minute, expired},
			"Extend by zero": {nil, held, 0, held}, "Extend by less than zero": {nil, held, 0, held},
			"Extend twice": {nil, held, minute, expired},
			"Release":      {nil, released, 0, released}, "Release, ended context": {nil, released, 0, released},
			"Release twice": {mortise.ErrUnlocked, released, 0, released},
		}},
		"held for 10 s more": {20 * time.Second, func(*mortisetest.Cluster, *Hold) { time.Sleep(10 * time.Second) },
			map[string]outcome{
				"Err": {nil, held, 10 * time.Second, expired}, "fire": {nil, held, 10 * time.Second, expired},
				"Extend":                   {nil, held, minute, expired},
				"Extend by zero":           {nil, held, 10 * time.Second, expired},
				"Extend by less than zero": {nil, held, 10 * time.Second, expired},
				"Extend twice":             {nil, held, minute, expired},
				"Release":                  {nil, released, 10 * time.Second, released},
				"Release, ended context":   {nil, released, 10 * time.Second, released},
				"Release twice":            {mortise.ErrUnlocked, released, 10 * time.Second, released},
			}},
		"expired": {20 * time.Second, func(*mortisetest.Cluster, *Hold) { time.Sleep(25 * time.Second) },
			ended(ErrExpired, expired, -5*time.Second)},
		"expired, and the timer is late": {20 * time.Second, func(_ *mortisetest.Cluster, h *Hold) {
			h.timer.Stop()
			time.Sleep(25 * time.Second)
		}, ended(ErrExpired, expired, -5*time.Second)},
		"expired at this moment, and the timer is late": {20 * time.Second, func(_ *mortisetest.Cluster, h *Hold) {
			h.timer.Stop()
			time.Sleep(20 * time.Second)
		}, ended(ErrExpired, expired, 0)},
		"released": {20 * time.Second, func(_ *mortisetest.Cluster, h *Hold) {
			_ = h.Release(context.Background())
			time.Sleep(5 * time.Second)
		}, ended(mortise.ErrUnlocked, released, 15*time.Second)},
		"lost": {time.Hour, func(c *mortisetest.Cluster, _ *Hold) {
			c.Lose(0)
			c.Ready(0)
		}, ended(mortise.ErrLost, lost, time.Hour)},
	}
	for state, s := range states {
		for method, want := range s.methods {
			synctest.Test(t, func(t *testing.T) {
				c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})
				lock, err := c.Node(0).Lock(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				h := New(lock, s.limit)
				if h.Lock() != lock {
					t.Error("another lock")
				}
				s.begin(c, h)
				now := time.Now()
				if err := calls()[method](h); !errors.Is(err, want.err) || want.err == nil && err != nil {
					t.Errorf("%s, %s: %v, want %v", state, method, err, want.err)
				}
				left := time.Duration(0)
				until, limited := h.Until()
				if limited {
					left = until.Sub(now)
				}
				if limited != (s.limit > 0 || want.left > 0) || left != want.left {
					t.Errorf("%s, %s: the limit passes in %v (%v), want %v", state, method, left, limited, want.left)
				}
				for _, now := range []int{want.after, want.later} {
					synctest.Wait()
					err := h.Err()
					next, taken := c.Node(0).TryLock(t.Context(), "a")
					if taken == nil {
						taken = next.Unlock(t.Context())
					}
					if !errors.Is(err, reasons[now]) || now == held && err != nil ||
						errors.Is(taken, mortise.ErrHeld) != (now == held) ||
						now != held && taken != nil {
						t.Errorf("%s, %s: %v, want %v; for another caller: %v", state, method, err, reasons[now], taken)
					}
					time.Sleep(90 * time.Second)
				}
			})
		}
	}
}

// TestReleaseWithoutConfirmation releases a lock whose node reaches no other. The error says which
// key is in doubt, and is none of those by which a Hold has ended before.
func TestReleaseWithoutConfirmation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 3)
		i := c.Follower()
		lock, err := c.Node(i).Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		h := New(lock, 0)
		c.Isolate(i)
		began := time.Now()
		err = h.Release(t.Context())
		if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || Ended(err) ||
			!strings.HasPrefix(err.Error(), `unlock "a": `) || took != releaseTime {
			t.Errorf("%v after %v", err, took)
		}
		c.Heal()
	})
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		lock, err := c.Node(0).Lock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if err := New(lock, 0).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		all = all[1:] // the context of Lock is that of the caller
		if len(all) != 1 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
