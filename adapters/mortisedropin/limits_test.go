package mortisedropin_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/concurrency"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/redislock"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/redsync"
	"github.com/mortise-lock/mortise/internal/lab/limits"
	"github.com/mortise-lock/mortise/mortisetest"
)

// node is the trial of a duration with a node.
func node(try func(t *testing.T, n *mortise.Node, d time.Duration)) func(*testing.T, time.Duration) {
	return func(t *testing.T, d time.Duration) {
		synctest.Test(t, func(t *testing.T) { try(t, mortisetest.New(t, 1).Node(0), d) })
	}
}

// occupied holds the lock of "k" for a minute.
func occupied(t *testing.T, n *mortise.Node) {
	lock, err := n.Lock(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	go func() {
		time.Sleep(time.Minute)
		_ = lock.Unlock(ctx)
	}()
}

// obtains is the trial of a strategy whose pauses last for a minute: Obtain gets the lock.
func obtains(s func(d time.Duration) redislock.RetryStrategy) func(*testing.T, time.Duration) {
	return node(func(t *testing.T, n *mortise.Node, d time.Duration) {
		occupied(t, n)
		lock, err := redislock.Obtain(t.Context(), n, "k", d, &redislock.Options{RetryStrategy: s(d)})
		if err != nil {
			t.Fatalf("with %v: %v", d, err)
		}
		time.Sleep(time.Minute)
		if err := lock.Release(t.Context()); err != nil {
			t.Errorf("with %v: %v", d, err)
		}
	})
}

// mutex is the trial of an option: the Mutex gets the lock after a minute, and holds it for
// another.
func mutex(n *mortise.Node, t *testing.T, options ...redsync.Option) {
	occupied(t, n)
	m := redsync.New(n).NewMutex("k", options...)
	if err := m.Lock(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if until := m.Until(); time.Until(until) <= 0 {
		t.Errorf("it is held until %v", until)
	}
	if ok, err := m.Extend(); !ok || err != nil {
		t.Errorf("Extend: %v, %v", ok, err)
	}
	if ok, err := m.Unlock(); !ok || err != nil {
		t.Errorf("Unlock: %v, %v", ok, err)
	}
}

func TestEveryInput(t *testing.T) {
	linear := func(time.Duration) redislock.RetryStrategy { return redislock.LinearBackoff(time.Second) }
	limits.Trials{
		Durations: map[string]func(*testing.T, time.Duration){
			"redislock.Obtain(ttl)":            obtains(linear),
			"redislock.Client.Obtain(ttl)":     obtains(linear),
			"redislock.LinearBackoff(backoff)": obtains(redislock.LinearBackoff),
			"redislock.ExponentialBackoff(least)": obtains(func(d time.Duration) redislock.RetryStrategy {
				return redislock.ExponentialBackoff(d, 0)
			}),
			"redislock.ExponentialBackoff(most)": obtains(func(d time.Duration) redislock.RetryStrategy {
				return redislock.ExponentialBackoff(0, d)
			}),
			"redislock.Lock.Refresh(ttl)": node(func(t *testing.T, n *mortise.Node, d time.Duration) {
				lock, err := redislock.Obtain(t.Context(), n, "k", time.Second, nil)
				if err != nil {
					t.Fatal(err)
				}
				if err := lock.Refresh(t.Context(), d, nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if err := lock.Release(t.Context()); err != nil {
					t.Errorf("with %v: %v", d, err)
				}
			}),
			"redsync.WithExpiry(expiry)": node(func(t *testing.T, n *mortise.Node, d time.Duration) {
				mutex(n, t, redsync.WithTries(1000), redsync.WithExpiry(d))
			}),
			"redsync.WithRetryDelay(delay)": node(func(t *testing.T, n *mortise.Node, d time.Duration) {
				mutex(n, t, redsync.WithRetryDelay(d))
			}),
		},
		Counts: map[string]limits.Count{
			"concurrency.WithTTL(ttl)": {Limit: math.MaxInt64, Try: func(t *testing.T, n int64) (err error) {
				synctest.Test(t, func(t *testing.T) {
					var s *concurrency.Session
					s, err = concurrency.NewSession(mortisetest.New(t, 1).Node(0), concurrency.WithTTL(int(n)))
					if err == nil {
						err = s.Close()
					}
				})
				return err
			}},
			"redislock.LimitRetry(most)": {Limit: math.MaxInt64, Try: func(t *testing.T, n int64) error {
				obtains(func(time.Duration) redislock.RetryStrategy {
					return redislock.LimitRetry(redislock.LinearBackoff(time.Second), int(n))
				})(t, time.Hour)
				return nil
			}},
			"redsync.WithTries(tries)": {Limit: math.MaxInt64, Try: func(t *testing.T, n int64) error {
				node(func(t *testing.T, node *mortise.Node, _ time.Duration) {
					mutex(node, t, redsync.WithTries(int(n)))
				})(t, 0)
				return nil
			}},
		},
	}.Run(t, ".")
}
