package redislock

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/internal/hold"
	"github.com/mortise-lock/mortise/mortisetest"
)

// TestThePausesOfEachStrategy compares all pauses up to the longest one.
func TestThePausesOfEachStrategy(t *testing.T) {
	const ms = time.Millisecond
	doubled := func(least, most time.Duration) (all []time.Duration) {
		pause := 4 * ms
		for range 40 {
			all = append(all, min(max(pause, least), most))
			pause = min(2*pause, 1<<26*ms)
		}
		return all
	}
	repeated := func(pause time.Duration, n int) []time.Duration { return slices.Repeat([]time.Duration{pause}, n) }
	for what, c := range map[string]struct {
		strategy RetryStrategy
		want     []time.Duration
	}{
		"none":           {NoRetry(), repeated(0, 3)},
		"linear":         {LinearBackoff(7 * ms), repeated(7*ms, 40)},
		"no limit":       {ExponentialBackoff(0, 0), doubled(0, math.MaxInt64)},
		"at least":       {ExponentialBackoff(100*ms, 0), doubled(100*ms, math.MaxInt64)},
		"at least a day": {ExponentialBackoff(24*time.Hour, 0), repeated(24*time.Hour, 40)},
		"at most":        {ExponentialBackoff(0, 100*ms), doubled(0, 100*ms)},
		"at most 16 ms":  {ExponentialBackoff(0, 16*ms), doubled(0, 16*ms)},
		"both":           {ExponentialBackoff(16*ms, 64*ms), doubled(16*ms, 64*ms)},
		"both, equal":    {ExponentialBackoff(16*ms, 16*ms), repeated(16*ms, 40)},
		"negative":       {ExponentialBackoff(-1, -1), doubled(0, math.MaxInt64)},
		"limited":        {LimitRetry(LinearBackoff(7*ms), 3), append(repeated(7*ms, 3), 0, 0, 0)},
		"limited to 0":   {LimitRetry(LinearBackoff(7*ms), 0), repeated(0, 3)},
		"limited to -1":  {LimitRetry(LinearBackoff(7*ms), -1), repeated(0, 3)},
		"limited twice": {LimitRetry(LimitRetry(ExponentialBackoff(0, 0), 2), 3),
			[]time.Duration{4 * ms, 8 * ms, 0, 0}},
	} {
		var got []time.Duration
		for range c.want {
			got = append(got, c.strategy.NextBackoff())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", what, got, c.want)
		}
	}
}

// TestEachErrorOfObtain compares the error of Obtain and the call of Failed for each answer of a
// group, with and without Failed, and with an ended context.
func TestEachErrorOfObtain(t *testing.T) {
	taken, waited, away, down := fmt.Errorf("so: %w", mortise.ErrHeld), fmt.Errorf("so: %w", hold.ErrWaited),
		fmt.Errorf("so: %w", hold.ErrAway), errors.New("down")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		answer error
		ctx    context.Context
		want   error // itself; nil means another one, with the text
		text   string
		failed string
	}{
		{taken, t.Context(), ErrNotObtained, "", "k: redislock: not obtained: so: mortise: the lock is held"},
		{waited, t.Context(), ErrNotObtained, "",
			"k: redislock: not obtained: so: the lock was not free during all retries"},
		{away, t.Context(), nil, "redislock: so: no leader of the group was reached during all retries", ""},
		{down, t.Context(), nil, "redislock: down", ""},
		{mortise.ErrBadKey, t.Context(), nil, "redislock: mortise: bad key", ""},
		{taken, ended, ErrNotObtained, "", "k: redislock: not obtained: so: mortise: the lock is held"},
		{down, ended, context.Canceled, "", "k: context canceled: down"},
		{fmt.Errorf("so: %w", context.Canceled), ended, context.Canceled, "", "k: redislock: so: context canceled"},
	} {
		for _, tells := range []bool{true, false} {
			var failed []string
			client := New(answers(func(context.Context, mortise.Request) error { return c.answer }))
			if tells {
				client.Failed = func(key string, err error) { failed = append(failed, key+": "+err.Error()) }
			}
			lock, err := client.Obtain(c.ctx, "k", time.Minute, nil)
			if lock != nil || c.want != nil && err != c.want ||
				c.want == nil && (!errors.Is(err, c.answer) || err.Error() != c.text) {
				t.Errorf("%v: %v, %v, want %v %s", c.answer, lock, err, c.want, c.text)
			}
			want := []string{c.failed}
			if !tells || c.failed == "" {
				want = nil
			}
			if !slices.Equal(failed, want) {
				t.Errorf("%v: Failed was called with %q, want %q", c.answer, failed, want)
			}
		}
	}
}

// answers is an Acquirer that grants nothing.
type answers func(ctx context.Context, r mortise.Request) error

func (a answers) Acquire(ctx context.Context, r mortise.Request) (*mortise.Lock, error) {
	return nil, a(ctx, r)
}

// TestWhatObtainAsks compares the request and the deadline of each call of Obtain.
func TestWhatObtainAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		later, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		for _, c := range []struct {
			ctx     context.Context
			options *Options
			want    mortise.Request
			left    time.Duration
		}{
			{t.Context(), nil, mortise.Request{Key: "k", Try: true}, time.Minute},
			{t.Context(), &Options{}, mortise.Request{Key: "k", Try: true}, time.Minute},
			{t.Context(), &Options{Metadata: "m"}, mortise.Request{Key: "k", Value: "m", Try: true}, time.Minute},
			{later, &Options{RetryStrategy: LinearBackoff(time.Second)}, mortise.Request{Key: "k"}, time.Hour},
			{t.Context(), &Options{RetryStrategy: LinearBackoff(time.Second)}, mortise.Request{Key: "k"}, time.Minute},
		} {
			asked := 0
			_, _ = Obtain(c.ctx, answers(func(ctx context.Context, r mortise.Request) error {
				asked++
				if at, _ := ctx.Deadline(); fmt.Sprint(r) != fmt.Sprint(c.want) || time.Until(at) != c.left {
					t.Errorf("%+v, until %v, want %+v, %v", r, time.Until(at), c.want, c.left)
				}
				return mortise.ErrHeld
			}), "k", time.Minute, c.options)
			if asked != 1 {
				t.Errorf("%d requests", asked)
			}
		}
	})
}

// TestTheLimitsOfATTL tries the shortest TTLs, and compares the refusals.
func TestTheLimitsOfATTL(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		for _, ttl := range []time.Duration{-time.Hour, -1, 0} {
			text := fmt.Sprintf("mortise: bad request: redislock: the TTL is %v; want more than 0", ttl)
			if lock, err := Obtain(t.Context(), c.Node(0), "a", ttl, nil); lock != nil || err == nil || err.Error() != text {
				t.Errorf("%v, %v, want %s", lock, err, text)
			}
			lock, err := Obtain(t.Context(), c.Node(0), "a", time.Minute, nil)
			check(t, err)
			if err := lock.Refresh(t.Context(), ttl, nil); err == nil || err.Error() != text {
				t.Errorf("Refresh: %v, want %s", err, text)
			}
			check(t, lock.Release(t.Context()))
		}
		_, err := Obtain(t.Context(), c.Node(0), "a", time.Minute, &Options{Token: "x"})
		const text = "mortise: bad request: redislock: Options.Token must be empty: the group gives the token"
		if err == nil || err.Error() != text {
			t.Errorf("a token: %v", err)
		}
		lock, err := Obtain(t.Context(), c.Node(0), "a", 1, nil)
		check(t, err)
		time.Sleep(1)
		if err := lock.Err(); !errors.Is(err, hold.ErrExpired) ||
			err.Error() != `redislock: the lock of "a" has ended: the expiry of the lock has passed` {
			t.Errorf("after its TTL: %v", err)
		}
	})
}

// TestEachMethodAfterEachEnd compares all results of a lock that is held, has expired, was released
// or is lost.
func TestEachMethodAfterEachEnd(t *testing.T) {
	for what, c := range map[string]struct {
		end     func(c *mortisetest.Cluster, l *Lock)
		ttl     time.Duration
		err     error
		refresh error
		release error
	}{
		"held": {func(*mortisetest.Cluster, *Lock) {}, time.Minute, nil, nil, nil},
		"held for a while": {func(*mortisetest.Cluster, *Lock) { time.Sleep(20 * time.Second) }, 40 * time.Second, nil, nil,
			nil},
		"expired": {func(*mortisetest.Cluster, *Lock) { time.Sleep(time.Minute) }, 0, hold.ErrExpired, ErrNotObtained,
			ErrLockNotHeld},
		"released": {func(_ *mortisetest.Cluster, l *Lock) { _ = l.Release(context.Background()) }, 0, mortise.ErrUnlocked,
			ErrNotObtained, ErrLockNotHeld},
		"lost": {func(c *mortisetest.Cluster, _ *Lock) { c.Lose(0); c.Ready(0) }, 0, mortise.ErrLost, ErrNotObtained,
			ErrLockNotHeld},
	} {
		synctest.Test(t, func(t *testing.T) {
			cluster := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			obtain := func() *Lock {
				l, err := Obtain(t.Context(), cluster.Node(0), "a", time.Minute, &Options{Metadata: "m"})
				check(t, err)
				return l
			}
			l := obtain()
			work := l.Context(t.Context())
			c.end(cluster, l)
			synctest.Wait()
			if ttl, err := l.TTL(t.Context()); ttl != c.ttl || err != nil {
				t.Errorf("%s: TTL %v, %v, want %v", what, ttl, err, c.ttl)
			}
			if err := l.Err(); (err == nil) != (c.err == nil) || !errors.Is(err, c.err) ||
				(work.Err() == nil) != (c.err == nil) {
				t.Errorf("%s: %v, want %v; the context: %v", what, err, c.err, work.Err())
			}
			if l.Key() != "a" || l.Metadata() != "m" || l.Token() != fmt.Sprint(uint64(l.Fence())) ||
				l.Fence() != l.hold.Lock().Token() {
				t.Errorf("%s: %s %s %s %d", what, l.Key(), l.Metadata(), l.Token(), l.Fence())
			}
			if err := l.Refresh(t.Context(), 2*time.Minute, nil); err != c.refresh {
				t.Errorf("%s: Refresh: %v, want %v", what, err, c.refresh)
			}
			if ttl, _ := l.TTL(t.Context()); c.refresh == nil && ttl != 2*time.Minute || c.refresh != nil && ttl != 0 {
				t.Errorf("%s: TTL %v after Refresh", what, ttl)
			}
			if err := l.Release(ended); err != c.release {
				t.Errorf("%s: Release: %v, want %v", what, err, c.release)
			}
			check(t, obtain().Release(t.Context())) // it is free
		})
	}
}

// TestAReleaseThatIsNotConfirmed releases a lock of a node that is cut off.
func TestAReleaseThatIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		l, err := Obtain(t.Context(), c.Node(0), "a", time.Hour, nil)
		check(t, err)
		c.Isolate(0)
		begin := time.Now()
		err = l.Release(t.Context())
		const text = `redislock: unlock "a": mortise: lock "a" was released, but this is not yet confirmed: ` +
			"context deadline exceeded"
		if took := time.Since(begin); took != 5*time.Second || err == nil || err.Error() != text {
			t.Errorf("%v after %v, want %s after 5 s", err, took, text)
		}
		c.Heal()
		c.Ready(0)
	})
}
