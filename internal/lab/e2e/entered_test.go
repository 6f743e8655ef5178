package e2e

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
	"github.com/mortise-lock/mortise/locker"
)

// TestAnInnerRequestIsHonouredOrRefused checks a request that enters a lock again. It must fail,
// and name the field, if it asks for more than the hold has.
func TestAnInnerRequestIsHonouredOrRefused(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		labels := map[string]string{"job": "nightly"}
		const third = time.Minute/3 + 1 // not in whole milliseconds
		rich := f.acquire(0, mortise.Request{Key: "rich", LockDelay: third, Notice: true, Value: "v",
			Labels: labels, MaxIdle: time.Hour})
		poor := f.acquire(0, mortise.Request{Key: "poor"})
		ask := func(l *mortise.Lock, r mortise.Request) error {
			r.Key = l.Key()
			again, err := f.nodes[0].Acquire(l.Context(t.Context()), r)
			if err != nil {
				return err
			}
			if again.Token() != l.Token() {
				t.Errorf("%+v is another hold", r)
			}
			return again.Unlock(t.Context())
		}
		for field, r := range map[string]mortise.Request{
			"LockDelay": {LockDelay: third}, "Notice": {Notice: true}, "Value": {Value: "v"},
			"Labels": {Labels: labels}, "MaxIdle": {MaxIdle: time.Hour},
		} {
			if err := ask(rich, r); err != nil {
				t.Errorf("%s, as the hold has it: %v", field, err)
			}
			if err := ask(poor, r); !errors.Is(err, mortise.ErrBadRequest) ||
				!strings.Contains(err.Error(), "Request."+field) {
				t.Errorf("%s, which the hold has not: %v", field, err)
			}
		}
		for field, r := range map[string]mortise.Request{
			"LockDelay": {LockDelay: time.Hour}, "Value": {Value: "w"},
			"Labels": {Labels: map[string]string{"job": "daily"}}, "MaxIdle": {MaxIdle: time.Minute},
		} {
			if err := ask(rich, r); !errors.Is(err, mortise.ErrBadRequest) ||
				!strings.Contains(err.Error(), "Request."+field) {
				t.Errorf("another %s: %v", field, err)
			}
		}
		if err := errors.Join(ask(rich, mortise.Request{}),
			ask(rich, mortise.Request{LockDelay: time.Second})); err != nil {
			t.Errorf("less than the hold has: %v", err)
		}
		unlock(t, rich)
		unlock(t, poor)
		f.nothingLeft()
	})
}

// TestAHandleEndsByItsOwnMaxHold checks that an inner handle ends after its MaxHold while the outer
// handle continues. If only the inner handle is left, the hold must end with it and keep its
// LockDelay.
func TestAHandleEndsByItsOwnMaxHold(t *testing.T) {
	for name, outlived := range map[string]bool{"the outer goes on": false, "the outer was unlocked": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 1)
				outer := f.acquire(0, mortise.Request{Key: "k", LockDelay: time.Minute})
				inner, err := f.nodes[0].Acquire(outer.Context(t.Context()),
					mortise.Request{Key: "k", MaxHold: 10 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				ctx := inner.Context(t.Context())
				if outlived {
					unlock(t, outer)
				}
				began := time.Now()
				<-ctx.Done()
				if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
					t.Errorf("the inner handle lasted %v, want 10 s", took)
				}
				if cause := context.Cause(ctx); !errors.Is(cause, mortise.ErrLost) ||
					!errors.Is(inner.Err(), mortise.ErrLost) {
					t.Errorf("the context ends by %v, the handle by %v", cause, inner.Err())
				}
				<-inner.Done()
				wantIs(t, inner.Unlock(t.Context()), mortise.ErrLost)
				next := f.later(0, mortise.Request{Key: "k"})
				if lost := time.Now(); outlived {
					unlock(t, <-next)
					if waited := time.Since(lost); waited < 59*time.Second || waited > 62*time.Second {
						t.Errorf("the next had the lock after %v, want the delay", waited)
					}
				} else {
					if err := outer.Err(); err != nil {
						t.Errorf("the outer handle ended too: %v", err)
					}
					waits(t, "the next", next)
					unlock(t, outer)
					unlock(t, comes(t, "the next", next))
				}
				f.nothingLeft()
			})
		})
	}
}

// TestEnteringLeavesNothing enters a lock again, and ends what has entered it. No goroutine may be
// left of that, although the lock is held for as long as its process lives.
func TestEnteringLeavesNothing(t *testing.T) {
	const times = 100
	nothing := func(context.Context, mortise.Token) error { return nil }
	for name, enter := range map[string]func(ctx context.Context, n *mortise.Node) error{
		"a handle with a MaxHold": func(ctx context.Context, n *mortise.Node) error {
			again, err := n.Acquire(ctx, mortise.Request{Key: "k", MaxHold: time.Hour})
			if err != nil {
				return err
			}
			synctest.Wait() // something watches the limit
			return again.Unlock(ctx)
		},
		"an upgrade of a handle with a MaxHold": func(ctx context.Context, n *mortise.Node) error {
			again, err := n.Acquire(ctx, mortise.Request{Key: "k", Mode: mortise.Upgradable, MaxHold: time.Hour})
			if err != nil {
				return err
			}
			_, err = again.Upgrade(ctx)
			synctest.Wait()
			return errors.Join(err, again.Unlock(ctx))
		},
		"Do": func(ctx context.Context, n *mortise.Node) error { return n.Do(ctx, "k", nothing) },
		"DoNested": func(ctx context.Context, n *mortise.Node) error {
			return n.DoNested(ctx, []mortise.Request{{Key: "k"}, {Key: "k"}}, nothing)
		},
		"Requests": func(ctx context.Context, n *mortise.Node) error {
			request := func(key string) mortise.Request { return mortise.Request{Key: key} }
			return locker.Requests(n, request).Do(ctx, "k", nothing)
		},
		"Use": func(ctx context.Context, n *mortise.Node) error {
			again, err := n.Lock(ctx, "k")
			if err != nil {
				return err
			}
			over, err := hold.Use(ctx, again, func(context.Context, *mortise.Lock) error { return nil })
			return errors.Join(over, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 1)
				outer := f.lock(0, "k")
				ctx := outer.Context(t.Context())
				synctest.Wait()
				before := runtime.NumGoroutine()
				for range times {
					if err := enter(ctx, f.nodes[0].Node); err != nil {
						t.Fatal(err)
					}
				}
				synctest.Wait()
				if left := runtime.NumGoroutine() - before; left >= times/2 {
					t.Errorf("%d goroutines are left after %d calls", left, times)
				}
				unlock(t, outer)
				f.nothingLeft()
			})
		})
	}
}
