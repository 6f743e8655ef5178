package compare

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	theirs "github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	ours "github.com/mortise-lock/mortise/adapters/mortisedropin/redislock"
	"github.com/mortise-lock/mortise/mortisetest"
)

// redislockLock has the methods of a Lock of redislock that name no type of the library.
type redislockLock interface {
	Key() string
	Token() string
	Metadata() string
	TTL(ctx context.Context) (time.Duration, error)
	Release(ctx context.Context) error
}

// redislockKind is one of the two libraries. retries are pauses of 10 ms; -1 means no end.
type redislockKind struct {
	obtain            func(ctx context.Context, key string, ttl time.Duration, retries int) (redislockLock, error)
	refresh           func(ctx context.Context, l redislockLock, ttl time.Duration) error
	pass              func(d time.Duration)
	notObtained, lost error
}

func redislocks(t *testing.T) map[string]redislockKind {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	redises, node := theirs.New(client), ours.New(mortisetest.New(t, 1).Node(0))
	return map[string]redislockKind{
		"redislock": {
			func(ctx context.Context, key string, ttl time.Duration, retries int) (redislockLock, error) {
				o := &theirs.Options{Metadata: "orders-0", RetryStrategy: theirs.LinearBackoff(10 * time.Millisecond)}
				if retries >= 0 {
					o.RetryStrategy = theirs.LimitRetry(o.RetryStrategy, retries)
				}
				return redises.Obtain(ctx, key, ttl, o)
			},
			func(ctx context.Context, l redislockLock, ttl time.Duration) error {
				return l.(*theirs.Lock).Refresh(ctx, ttl, nil)
			},
			func(d time.Duration) { time.Sleep(d); server.FastForward(d) },
			theirs.ErrNotObtained, theirs.ErrLockNotHeld,
		},
		"mortise": {
			func(ctx context.Context, key string, ttl time.Duration, retries int) (redislockLock, error) {
				o := &ours.Options{Metadata: "orders-0", RetryStrategy: ours.LinearBackoff(10 * time.Millisecond)}
				if retries >= 0 {
					o.RetryStrategy = ours.LimitRetry(o.RetryStrategy, retries)
				}
				return node.Obtain(ctx, key, ttl, o)
			},
			func(ctx context.Context, l redislockLock, ttl time.Duration) error {
				return l.(*ours.Lock).Refresh(ctx, ttl, nil)
			},
			time.Sleep,
			ours.ErrNotObtained, ours.ErrLockNotHeld,
		},
	}
}

func TestRedislock(t *testing.T) {
	const ttl = 400 * time.Millisecond
	for name, k := range redislocks(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			one, err := k.obtain(ctx, "report", ttl, 0)
			yes(t, "obtain", err == nil, err)
			yes(t, "fields", one.Key() == "report" && one.Metadata() == "orders-0" && one.Token() != "", nil)
			for range 3 {
				k.pass(ttl / 2)
				yes(t, "refresh", true, k.refresh(ctx, one, ttl))
			}
			left, err := one.TTL(ctx)
			yes(t, "TTL", left > ttl/2 && left <= ttl, err)
			for _, retries := range []int{0, 3} {
				if _, err := k.obtain(ctx, "report", ttl, retries); err != k.notObtained {
					t.Errorf("%d retries: %v", retries, err)
				}
			}
			if _, err := k.obtain(ctx, "report", 50*time.Millisecond, -1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("retries without end: %v", err)
			}
			k.pass(ttl + ttl/4)
			left, err = one.TTL(ctx)
			yes(t, "TTL after the end", left == 0, err)
			if err := k.refresh(ctx, one, ttl); err != k.notObtained {
				t.Errorf("refresh after the end: %v", err)
			}
			two, err := k.obtain(ctx, "report", ttl, 0)
			yes(t, "obtain after the end", err == nil, err)
			if err := one.Release(ctx); err != k.lost {
				t.Errorf("release after the end: %v", err)
			}
			released := make(chan error)
			time.AfterFunc(30*time.Millisecond, func() { released <- two.Release(ctx) })
			three, err := k.obtain(ctx, "report", time.Minute, -1)
			yes(t, "obtain after a wait", err == nil, err)
			yes(t, "release", true, <-released)
			yes(t, "release", three.Token() != two.Token(), three.Release(ctx))
		})
	}
}

func TestBackoffs(t *testing.T) {
	for name, of := range map[string][2]interface{ NextBackoff() time.Duration }{
		"none":        {theirs.NoRetry(), ours.NoRetry()},
		"linear":      {theirs.LinearBackoff(3), ours.LinearBackoff(3)},
		"limited":     {theirs.LimitRetry(theirs.LinearBackoff(3), 2), ours.LimitRetry(ours.LinearBackoff(3), 2)},
		"limited, 0":  {theirs.LimitRetry(theirs.LinearBackoff(3), 0), ours.LimitRetry(ours.LinearBackoff(3), 0)},
		"exponential": {theirs.ExponentialBackoff(0, 0), ours.ExponentialBackoff(0, 0)},
		"within": {theirs.ExponentialBackoff(16*time.Millisecond, time.Hour),
			ours.ExponentialBackoff(16*time.Millisecond, time.Hour)},
		"crossed": {theirs.ExponentialBackoff(time.Hour, time.Second), ours.ExponentialBackoff(time.Hour, time.Second)},
	} {
		for i := range 40 {
			if a, b := of[0].NextBackoff(), of[1].NextBackoff(); a != b {
				t.Errorf("%s, retry %d: %v and %v", name, i+1, a, b)
			}
		}
	}
}
