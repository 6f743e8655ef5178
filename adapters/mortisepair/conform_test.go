package mortisepair_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/adapters/mortisepair"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/locker/lockertest"
)

func TestPairsConform(t *testing.T) {
	for name, fresh := range map[string]func(t *testing.T) locker.Locker{
		"Breaker": func(t *testing.T) locker.Locker { return closedBreaker(t, new(locker.Local)) },
		"Breaker on its Fallback": func(t *testing.T) locker.Locker {
			return made(t)(mortisepair.NewBreaker(mortisepair.BreakerConfig{
				Locker: failing(locker.ErrNotReady), Wait: time.Second, Failures: 1, Pause: time.Hour,
				Fallback: new(locker.Local),
			}))
		},
		"Both, First's token": func(t *testing.T) locker.Locker {
			return both(t, new(locker.Local), ahead(t, 1000), mortisepair.FirstLock)
		},
		"Both, Second's token": func(t *testing.T) locker.Locker {
			return both(t, ahead(t, 1000), new(locker.Local), mortisepair.SecondLock)
		},
		"Both, observing": func(t *testing.T) locker.Locker {
			return observing(t, new(locker.Local), ahead(t, 1000),
				func(key string, err error) { t.Errorf("Second of %q: %v", key, err) })
		},
		"Both, Second missing": func(t *testing.T) locker.Locker {
			return observing(t, new(locker.Local), failing(locker.ErrNotReady), func(string, error) {})
		},
		"Both of a Breaker": func(t *testing.T) locker.Locker {
			return both(t, closedBreaker(t, new(locker.Local)), ahead(t, 1000), mortisepair.FirstLock)
		},
	} {
		t.Run(name, func(t *testing.T) { lockertest.Run(t, fresh) })
	}
}

// made returns a function that returns a new Locker or fails the test: made(t)(NewBoth(…)).
func made(t testing.TB) func(locker.Locker, error) locker.Locker {
	return func(l locker.Locker, err error) locker.Locker {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
}

func closedBreaker(t *testing.T, l locker.Locker) locker.Locker {
	b, err := mortisepair.NewBreaker(mortisepair.BreakerConfig{Locker: l, Wait: 10 * time.Second,
		Fallback: failing(locker.ErrClosed)})
	return made(t)(b, err)
}

func both(t *testing.T, first, second locker.Locker, a mortisepair.Authority) locker.Locker {
	b, err := mortisepair.NewBoth(mortisepair.BothConfig{First: first, Second: second, Authority: a})
	return made(t)(b, err)
}

func observing(t *testing.T, first, second locker.Locker, hook func(string, error)) locker.Locker {
	b, err := mortisepair.NewBoth(mortisepair.BothConfig{First: first, Second: second,
		Authority: mortisepair.FirstLock, Observe: true, OnSecond: hook})
	return made(t)(b, err)
}

func failing(err error) locker.Locker {
	return locker.Func(func(ctx context.Context, key string, fn func(context.Context, locker.Token) error) error {
		checked := new(locker.Local).Do(ctx, key, func(context.Context, locker.Token) error { return nil })
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
		if err := l.Do(t.Context(), "ahead", func(context.Context, locker.Token) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestPairsLetEnterAgain(t *testing.T) {
	for kind, l := range map[string]locker.Locker{
		"Breaker": closedBreaker(t, new(locker.Local)),
		"Both":    both(t, ahead(t, 1000), new(locker.Local), mortisepair.FirstLock),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := l.Do(ctx, "k", func(ctx context.Context, outer locker.Token) error {
			return l.Do(ctx, "k", func(_ context.Context, token locker.Token) error {
				if token != outer {
					t.Errorf("%s: entered again with the token %d, not %d", kind, token, outer)
				}
				return nil
			})
		})
		cancel()
		if err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
