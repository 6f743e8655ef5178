package locker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

func router(t *testing.T, routes ...Route) *Router {
	t.Helper()
	r, err := NewRouter(routes...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRouterTakesTheLongestPrefix(t *testing.T) {
	var asked string
	to := func(name string) Locker {
		var l Local
		return Func(func(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
			asked = name
			return l.Do(ctx, key, fn)
		})
	}
	routes := []Route{{"a/", to("a/"), 9, 9}, {"a/b/", to("a/b/"), 9, 9}, {"a/bc", to("a/bc"), 9, 9},
		{"z", to("z"), 9, 9}}
	few, all := router(t, routes...), router(t, append(routes, Route{"", to("rest"), 9, 9})...)
	for key, want := range map[string]string{"a/x": "a/", "a/": "a/", "a/b": "a/", "a/b/c": "a/b/", "a/bcd": "a/bc",
		"z": "z", "a": "", "b": ""} {
		asked = ""
		err := few.Do(t.Context(), key, nothing)
		if asked != want || errors.Is(err, ErrNoRoute) != (want == "") {
			t.Errorf("key %q went to %q with %v, want %q", key, asked, err, want)
		}
		if want == "" {
			want = "rest"
		}
		if err := all.Do(t.Context(), key, nothing); err != nil || asked != want {
			t.Errorf("with a route for the rest, key %q went to %q with %v, want %q", key, asked, err, want)
		}
	}
	if err := few.Do(t.Context(), "", nothing); !errors.Is(err, mortise.ErrBadKey) {
		t.Errorf("an empty key: %v", err)
	}
}

// One tenant is always served immediately, while another tenant has 10,000 callers for one key that
// is held for an hour.
func TestRouterKeepsTenantsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var local Local
		var inside atomic.Int64
		shared := Func(func(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
			defer inside.Add(-1)
			if inside.Add(1) > 150 {
				return mortise.ErrOverloaded
			}
			return local.Do(ctx, key, fn)
		})
		r := router(t, Route{"greedy/", shared, 10, 100}, Route{"modest/", shared, 10, 10})
		free := holdUntil(t, r, "greedy/hot")
		var all sync.WaitGroup
		var refused, served atomic.Int64
		for range 10_000 {
			all.Go(func() {
				err := r.Do(t.Context(), "greedy/hot", nothing)
				var limit *LimitError
				switch {
				case err == nil:
					served.Add(1)
				case errors.As(err, &limit) && *limit == LimitError{"greedy/", "MaxWaiting", 100, "greedy/hot"} &&
					errors.Is(err, mortise.ErrOverloaded):
					refused.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if refused.Load() != 9900 || inside.Load() != 101 {
			t.Errorf("%d of the greedy were refused at once, and %d are in the service; want 9900 and 101",
				refused.Load(), inside.Load())
		}
		for range 1000 {
			began := time.Now()
			if err := r.Do(t.Context(), "modest/k", nothing); err != nil || time.Since(began) != 0 {
				t.Fatalf("the modest tenant: %v after %v", err, time.Since(began))
			}
		}
		time.Sleep(time.Hour)
		if err := free(); err != nil {
			t.Error(err)
		}
		all.Wait()
		if served.Load() != 100 {
			t.Errorf("%d of the greedy were served in the end, want the 100 that waited", served.Load())
		}
		quiet(t, r)
	})
}

func quiet(t *testing.T, r *Router) {
	t.Helper()
	for prefix, l := range r.routes {
		if l.waits != 0 || l.holding != 0 {
			t.Errorf("route %q counts %d waiting and %d holding, but there are no calls", prefix, l.waits, l.holding)
		}
	}
}

func TestRouterLimitsHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var local Local
		r := router(t, Route{"t/", &local, 2, 5})
		freeA := holdUntil(t, r, "t/a")
		elsewhere := holdUntil(t, &local, "t/c")
		waited := make(chan error, 1)
		go func() {
			waited <- r.Do(t.Context(), "t/c",
				func(context.Context, mortise.Token) error { t.Error("a third one holds"); return nil })
		}()
		synctest.Wait()
		freeB := holdUntil(t, r, "t/b")

		want := LimitError{"t/", "MaxHolds", 2, "t/d"}
		taken, began := holdUntil(t, &local, "t/d"), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := r.Do(ctx, "t/d", nothing)
		var limit *LimitError
		if !errors.As(err, &limit) || *limit != want || time.Since(began) != 0 {
			t.Errorf("on coming: %v after %v, want a refusal at once although others hold the lock", err,
				time.Since(began))
		}
		if err := errors.Join(taken(), elsewhere()); err != nil {
			t.Error(err)
		}
		want.Key = "t/c"
		if err := <-waited; !errors.As(err, &limit) || *limit != want {
			t.Errorf("on being granted: %v", err)
		}
		if err := local.Do(t.Context(), "t/c", nothing); err != nil {
			t.Error(err)
		}
		if err := errors.Join(freeA(), freeB()); err != nil {
			t.Error(err)
		}
		if err := r.Do(t.Context(), "t/d", nothing); err != nil {
			t.Errorf("when others have gone: %v", err)
		}
		quiet(t, r)
	})
}

func TestRouterForgetsWhoGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := router(t, Route{"", new(Local), 1, 1})
		for range 5 {
			func() {
				defer func() { recover() }()
				_ = r.Do(t.Context(), "k", func(context.Context, mortise.Token) error { panic("fn") })
			}()
			_ = r.Do(t.Context(), "k", func(context.Context, mortise.Token) error { return errors.New("fn") })
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = r.Do(ctx, "k", nothing)
			quiet(t, r)
		}
	})
}
