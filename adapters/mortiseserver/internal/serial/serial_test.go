package serial

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// group answers as a node would, and notes what it is asked.
type group struct {
	after time.Duration // when it grants the lock; zero means never
	fails error         // its answer; nil means a grant, or the error of the context
	lost  time.Duration // when its lease is lost; zero means never
	begun time.Time
	got   []mortise.Request
	ended error // of the last context
}

func (g *group) Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error) {
	g.got = append(g.got, r)
	context.AfterFunc(ctx, func() { g.ended = context.Cause(ctx) })
	if g.fails != nil {
		return nil, g.fails
	}
	var granted <-chan time.Time
	if g.after > 0 {
		granted = time.After(g.after)
	}
	select {
	case <-granted:
		return new(mortise.Lock), nil
	case <-ctx.Done():
		err := ctx.Err()
		if cause := context.Cause(ctx); cause != err {
			return nil, fmt.Errorf("mortise: lock %q: %w: %w", r.Key, err, cause)
		}
		return nil, fmt.Errorf("mortise: lock %q: %w", r.Key, err)
	}
}

func (g *group) Status() mortise.Status {
	if g.lost > 0 && time.Since(g.begun) >= g.lost {
		return mortise.Status{Lease: mortise.LeaseLost}
	}
	return mortise.Status{Lease: mortise.LeaseJeopardy}
}

// TestEachEndOfAWait compares the whole result of a wait: for grants and errors, for a limit, for a
// lease that is lost, and for a caller who goes.
func TestEachEndOfAWait(t *testing.T) {
	down := errors.New("down")
	const second = time.Second
	for what, c := range map[string]struct {
		group   group
		maxWait time.Duration
		until   time.Duration // when the context of the caller ends; zero means never
		took    time.Duration
		text    string
		reason  Reason
		is, not error
	}{
		"granted":                   {group: group{after: 5 * second}, took: 5 * second},
		"granted before the limit":  {group: group{after: 2*second - 1}, maxWait: 2 * second, took: 2*second - 1},
		"granted, a negative limit": {group: group{after: second}, maxWait: -1, took: second},
		"the limit": {maxWait: 2500 * time.Millisecond, took: 2500 * time.Millisecond, is: errWaited,
			not: context.Canceled, text: `mortise: lock "k": the lock was not free in time`, reason: Busy},
		"the shortest limit": {maxWait: 1, took: 1, is: errWaited, text: `mortise: lock "k": the lock was not free in time`,
			reason: Busy},
		"no lease": {group: group{lost: 1}, took: second, is: errAway, not: context.Canceled, reason: Away,
			text: `mortise: lock "k": the node has lost its lease: it cannot reach the group`},
		"the lease is lost later": {group: group{lost: 2*second + 1}, took: 3 * second, is: errAway, reason: Away,
			text: `mortise: lock "k": the node has lost its lease: it cannot reach the group`},
		"the lease is lost after the limit": {group: group{lost: 3 * second}, maxWait: 2500 * time.Millisecond,
			took: 2500 * time.Millisecond, is: errWaited, reason: Busy,
			text: `mortise: lock "k": the lock was not free in time`},
		"the caller goes": {until: 2500 * time.Millisecond, maxWait: time.Hour, took: 2500 * time.Millisecond, reason: Ended,
			is: context.DeadlineExceeded, not: errWaited, text: `mortise: lock "k": context deadline exceeded`},
		"refused":       {group: group{fails: down}, text: "down", is: down, reason: Mistake},
		"refused, held": {group: group{fails: mortise.ErrHeld}, text: mortise.ErrHeld.Error(), reason: Busy},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, g := t.Context(), c.group
			if g.begun = time.Now(); c.until > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.until)
				defer cancel()
			}
			r := mortise.Request{Key: "k", Value: "v"}
			lock, err := acquire(ctx, &g, r, c.maxWait)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if took := time.Since(g.begun); took != c.took || text != c.text || (lock == nil) != (err != nil) ||
				c.is != nil && !errors.Is(err, c.is) || c.not != nil && errors.Is(err, c.not) {
				t.Errorf("%s: %v after %v, want %s after %v", what, err, took, c.text, c.took)
			}
			if err != nil && reason(ctx, err) != c.reason {
				t.Errorf("%s: the reason is %d, want %d", what, reason(ctx, err), c.reason)
			}
			synctest.Wait()
			if fmt.Sprint(g.got) != fmt.Sprint([]mortise.Request{r}) || g.ended == nil {
				t.Errorf("%s: asked for %+v, the context has ended: %v", what, g.got, g.ended)
			}
		})
	}
}

// TestEachEndOfARun compares what Do returns, and what the function sees, for each way in which a
// run under the lock ends. Afterwards the lock is free.
func TestEachEndOfARun(t *testing.T) {
	type run struct {
		c      *mortisetest.Cluster
		cancel context.CancelFunc
	}
	for what, c := range map[string]struct {
		fn     func(t *testing.T, r run, ctx context.Context)
		reason Reason
		err    error
		text   string
		after  time.Duration
	}{
		"returns": {func(*testing.T, run, context.Context) {}, Ran, nil, "", 0},
		"the caller goes": {func(t *testing.T, r run, ctx context.Context) {
			r.cancel()
			if <-ctx.Done(); context.Cause(ctx) != context.Canceled {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
		}, Ran, nil, "", 0},
		"lost": {func(t *testing.T, r run, ctx context.Context) {
			r.c.Lose(0)
			if <-ctx.Done(); !errors.Is(context.Cause(ctx), mortise.ErrLost) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			r.c.Ready(0)
		}, Cut, mortise.ErrLost, `unlock "a": mortise: the lock was lost`, 0},
		"lost, and the caller goes": {func(_ *testing.T, r run, ctx context.Context) {
			r.c.Lose(0)
			<-ctx.Done()
			r.c.Ready(0)
			r.cancel()
		}, Cut, mortise.ErrLost, `unlock "a": mortise: the lock was lost`, 0},
		"the node leaves": {func(t *testing.T, r run, ctx context.Context) {
			left := make(chan error, 1)
			go func() { left <- r.c.Node(0).Leave(context.Background()) }()
			t.Cleanup(func() {
				if err := <-left; err != nil {
					t.Error(err)
				}
			})
			<-ctx.Done()
		}, Cut, nil, "", 0},
		"cut off": {func(_ *testing.T, r run, _ context.Context) { r.c.Isolate(0) }, Ran, context.DeadlineExceeded,
			`unlock "a": mortise: lock "a" was released, but this is not yet confirmed: context deadline exceeded`,
			releaseTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var seen context.Context
			var ended time.Time
			why, err := Do(ctx, cluster.Node(0), mortise.Request{Key: "a"}, 0, func(ctx context.Context) {
				seen = ctx
				if token, locked := mortise.TokenFrom(ctx); token == 0 || !locked || ctx.Err() != nil {
					t.Errorf("%s: token %d, %v", what, token, ctx.Err())
				}
				c.fn(t, run{cluster, cancel}, ctx)
				ended = time.Now()
			})
			if took := time.Since(ended).Round(100 * time.Millisecond); why != c.reason || (err == nil) != (c.text == "") ||
				err != nil && (!strings.HasPrefix(err.Error(), c.text) || !errors.Is(err, c.err)) || took != c.after {
				t.Errorf("%s: %d, %v after %v, want %d, %s after %v", what, why, err, took, c.reason, c.text, c.after)
			}
			synctest.Wait()
			if seen.Err() == nil {
				t.Errorf("%s: the context of the function goes on", what)
			}
			cluster.Heal()
			cluster.Await("a", 0, 0)
		})
	}
}

// TestAPanicReleasesTheLock lets the function panic.
func TestAPanicReleasesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 1)
		func() {
			defer func() {
				if got := recover(); got != "own" {
					t.Errorf("recovered %v", got)
				}
			}()
			_, _ = Do(t.Context(), cluster.Node(0), mortise.Request{Key: "a"}, 0, func(context.Context) { panic("own") })
		}()
		cluster.Await("a", 0, 0)
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
		var under context.Context
		if _, err := Do(t.Context(), c.Node(0), mortise.Request{Key: "a"}, 0, func(ctx context.Context) {
			under = ctx
		}); err != nil {
			t.Fatal(err)
		}
		all = append(all, under)
		if len(all) != 3 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
