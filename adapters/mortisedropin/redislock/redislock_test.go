package redislock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

func inBubble(t *testing.T, nodes int, test func(t *testing.T, c *mortisetest.Cluster)) {
	synctest.Test(t, func(t *testing.T) { test(t, mortisetest.New(t, nodes)) })
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheTTLFreesTheLock(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, locker := t.Context(), New(c.Node(0))
		one, err := locker.Obtain(ctx, "a", time.Minute, &Options{Metadata: "orders-0"})
		check(t, err)
		if one.Key() != "a" || one.Metadata() != "orders-0" || one.Token() == "0" {
			t.Errorf("%q %q %q", one.Key(), one.Metadata(), one.Token())
		}
		time.Sleep(50 * time.Second)
		check(t, one.Refresh(ctx, time.Minute, nil))
		time.Sleep(50 * time.Second)
		if ttl, err := one.TTL(ctx); ttl != 10*time.Second || err != nil {
			t.Errorf("TTL %v, %v", ttl, err)
		}
		var held *mortise.HeldError
		locker.Failed = func(key string, err error) {
			if !errors.As(err, &held) || key != "a" {
				t.Errorf("the reason for %q: %v", key, err)
			}
		}
		if _, err := locker.Obtain(ctx, "a", time.Minute, nil); err != ErrNotObtained || held.Value != "orders-0" {
			t.Errorf("before the end: %v", err)
		}
		work := one.Context(ctx)
		time.Sleep(11 * time.Second)
		two, err := locker.Obtain(ctx, "a", time.Minute, nil)
		check(t, err)
		if work.Err() == nil || two.Fence() <= one.Fence() {
			t.Errorf("context %v, tokens %d and %d", work.Err(), one.Fence(), two.Fence())
		}
		if ttl, err := one.TTL(ctx); ttl != 0 || err != nil {
			t.Errorf("TTL after the end: %v, %v", ttl, err)
		}
		if err := one.Refresh(ctx, time.Minute, nil); err != ErrNotObtained {
			t.Errorf("refresh after the end: %v", err)
		}
		if err := one.Release(ctx); err != ErrLockNotHeld {
			t.Errorf("release after the end: %v", err)
		}
		check(t, two.Refresh(ctx, time.Second, nil)) // less than before
		time.Sleep(2 * time.Second)
		three, err := locker.Obtain(ctx, "a", time.Minute, nil)
		check(t, err)
		if err := two.Release(ctx); err != ErrLockNotHeld {
			t.Errorf("release after a shorter TTL: %v", err)
		}
		two = three
		check(t, two.Release(ctx))
		if err := two.Release(ctx); err != ErrLockNotHeld {
			t.Errorf("release again: %v", err)
		}
		if err := (*Lock)(nil).Release(ctx); err != ErrLockNotHeld {
			t.Errorf("release of nil: %v", err)
		}
	})
}

// Obtain waits as long as its strategy and its context allow, and no longer than the TTL without a
// deadline.
func TestWaits(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, locker := t.Context(), New(c.Node(0))
		held, err := locker.Obtain(ctx, "a", time.Hour, nil)
		check(t, err)
		for _, w := range []struct {
			s    RetryStrategy
			wait time.Duration
			err  error
		}{
			{NoRetry(), 0, ErrNotObtained},
			{LimitRetry(LinearBackoff(time.Second), 3), 3 * time.Second, ErrNotObtained},
			{LimitRetry(ExponentialBackoff(16*time.Millisecond, 64*time.Millisecond), 6),
				(16 + 16 + 16 + 32 + 64 + 64) * time.Millisecond, ErrNotObtained},
			{LinearBackoff(time.Second), 7 * time.Second, context.DeadlineExceeded},
		} {
			begin := time.Now()
			_, err := locker.Obtain(ctx, "a", 7*time.Second, &Options{RetryStrategy: w.s})
			if took := time.Since(begin); err != w.err || took != w.wait {
				t.Errorf("%T: %v after %v, want %v after %v", w.s, err, took, w.err, w.wait)
			}
		}
		time.AfterFunc(2*time.Second, func() { _ = held.Release(ctx) })
		next, err := locker.Obtain(ctx, "a", time.Minute, &Options{RetryStrategy: LinearBackoff(time.Minute)})
		check(t, err)
		check(t, next.Release(ctx))
	})
}

func TestMistakesAreRefused(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		ctx, locker := t.Context(), New(c.Node(0))
		if _, err := locker.Obtain(ctx, "a", 0, nil); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("no TTL: %v", err)
		}
		if _, err := locker.Obtain(ctx, "a", time.Second, &Options{Token: "x"}); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("a token: %v", err)
		}
		if _, err := locker.Obtain(ctx, "", time.Second, nil); !errors.Is(err, mortise.ErrBadKey) {
			t.Errorf("no key: %v", err)
		}
		lock, err := Obtain(ctx, c.Node(0), "a", time.Second, nil)
		check(t, err)
		if err := lock.Refresh(ctx, 0, nil); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("no TTL: %v", err)
		}
		check(t, lock.Release(ctx))
	})
}

func TestALostLockIsReported(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		lock, err := Obtain(t.Context(), c.Node(0), "a", time.Hour, nil)
		check(t, err)
		c.Lose(0)
		if ttl, err := lock.TTL(t.Context()); ttl != 0 || err != nil {
			t.Errorf("TTL %v, %v", ttl, err)
		}
		c.Ready(0)
		if err := lock.Release(t.Context()); err != ErrLockNotHeld || !errors.Is(lock.Err(), mortise.ErrLost) {
			t.Errorf("release: %v, because of %v", err, lock.Err())
		}
	})
}
