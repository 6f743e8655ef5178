package locker_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/locker/lockertest"
)

// make1 returns a function that returns a new wrapper or fails the test. Call it as
// make1(t)(locker.NewRetry(…)).
func make1[L locker.Locker](t testing.TB) func(L, error) L {
	return func(l L, err error) L {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func TestLockersConform(t *testing.T) {
	for name, fresh := range map[string]func(t *testing.T) locker.Locker{
		"Node": soloNode,
		"Requests": func(t *testing.T) locker.Locker {
			return requests(t, soloNode(t).(*mortise.Node), mortise.Request{})
		},
		"Local": func(*testing.T) locker.Locker { return new(locker.Local) },
		"Func":  func(*testing.T) locker.Locker { return locker.Func(new(locker.Local).Do) },
		"Retry": func(t *testing.T) locker.Locker {
			return make1[*locker.Retry](t)(locker.NewRetry(locker.RetryConfig{Locker: new(locker.Local)}))
		},
		"Patience": func(t *testing.T) locker.Locker {
			return patience(t, locker.PatienceConfig{Locker: new(locker.Local), Shortest: time.Minute})
		},
		"Breaker": func(t *testing.T) locker.Locker { return closedBreaker(t, new(locker.Local)) },
		"Breaker on its Fallback": func(t *testing.T) locker.Locker {
			return make1[*locker.Breaker](t)(locker.NewBreaker(locker.BreakerConfig{
				Locker: failing(mortise.ErrNotReady), Wait: time.Second, Failures: 1, Pause: time.Hour,
				Fallback: new(locker.Local),
			}))
		},
		"Both, First's token": func(t *testing.T) locker.Locker {
			return both(t, new(locker.Local), ahead(t, 1000),
				locker.FirstLock)
		},
		"Both, Second's token": func(t *testing.T) locker.Locker {
			return both(t, ahead(t, 1000), new(locker.Local),
				locker.SecondLock)
		},
		"Both, observing": func(t *testing.T) locker.Locker {
			return observing(t, new(locker.Local), ahead(t, 1000),
				func(key string, err error) { t.Errorf("Second of %q: %v", key, err) })
		},
		"Both, Second missing": func(t *testing.T) locker.Locker {
			return observing(t, new(locker.Local), failing(mortise.ErrNotReady), func(string, error) {})
		},
		"Router": func(t *testing.T) locker.Locker {
			return make1[*locker.Router](t)(locker.NewRouter(
				locker.Route{Prefix: "lockertest/o", Locker: new(locker.Local), MaxHolds: 8, MaxWaiting: 8},
				locker.Route{Locker: new(locker.Local), MaxHolds: 8, MaxWaiting: 8},
			))
		},
		"all at once": func(t *testing.T) locker.Locker {
			inner := both(t, closedBreaker(t, new(locker.Local)), ahead(t, 1000), locker.FirstLock)
			routed := make1[*locker.Router](t)(locker.NewRouter(locker.Route{Locker: inner, MaxHolds: 8,
				MaxWaiting: 8}))
			return make1[*locker.Retry](t)(locker.NewRetry(locker.RetryConfig{Locker: routed}))
		},
	} {
		t.Run(name, func(t *testing.T) { lockertest.Run(t, fresh) })
	}
}

func soloNode(t *testing.T) locker.Locker {
	node, err := mortise.Start(t.Context(), mortise.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { node.Close() })
	return node
}

func closedBreaker(t *testing.T, l locker.Locker) locker.Locker {
	return make1[*locker.Breaker](t)(locker.NewBreaker(locker.BreakerConfig{Locker: l, Wait: 10 * time.Second,
		Fallback: failing(mortise.ErrClosed)}))
}

func both(t *testing.T, first, second locker.Locker, a locker.Authority) locker.Locker {
	return make1[*locker.Both](t)(locker.NewBoth(locker.BothConfig{First: first, Second: second, Authority: a}))
}

func observing(t *testing.T, first, second locker.Locker, hook func(string, error)) locker.Locker {
	return make1[*locker.Both](t)(locker.NewBoth(locker.BothConfig{First: first, Second: second,
		Authority: locker.FirstLock, Observe: true, OnSecond: hook}))
}

func failing(err error) locker.Locker {
	return locker.Func(func(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
		checked := new(locker.Local).Do(ctx, key, func(context.Context, mortise.Token) error { return nil })
		if checked != nil {
			return checked
		}
		return err
	})
}

// ahead returns a Local that has already granted n tokens.
func ahead(t testing.TB, n int) *locker.Local {
	l := new(locker.Local)
	for range n {
		if err := l.Do(t.Context(), "ahead", func(context.Context, mortise.Token) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestWrappersLetEnterAgain(t *testing.T) {
	under := map[string]func(*testing.T) locker.Locker{"Node": soloNode,
		"Local": func(*testing.T) locker.Locker { return new(locker.Local) }}
	for name, fresh := range under {
		for kind, l := range map[string]locker.Locker{
			"alone":   fresh(t),
			"Retry":   make1[*locker.Retry](t)(locker.NewRetry(locker.RetryConfig{Locker: fresh(t)})),
			"Breaker": closedBreaker(t, fresh(t)),
			"Both":    both(t, ahead(t, 1000), fresh(t), locker.FirstLock),
			"Router": make1[*locker.Router](t)(locker.NewRouter(locker.Route{Locker: fresh(t), MaxHolds: 2,
				MaxWaiting: 1})),
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			err := l.Do(ctx, "k", func(ctx context.Context, outer mortise.Token) error {
				return l.Do(ctx, "k", func(_ context.Context, token mortise.Token) error {
					if token != outer {
						t.Errorf("%s of %s: entered again with the token %d, not %d", kind, name, token, outer)
					}
					return nil
				})
			})
			cancel()
			if err != nil {
				t.Errorf("%s of %s: %v", kind, name, err)
			}
		}
	}
}
