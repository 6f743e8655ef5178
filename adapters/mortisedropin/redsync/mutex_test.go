package redsync

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

func must(t *testing.T, what string, ok bool, err error) {
	t.Helper()
	if !ok || err != nil {
		t.Fatalf("%s: %v, %v", what, ok, err)
	}
}

func TestExpiryFreesTheLock(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		rs := New(c.Node(0))
		one, two := rs.NewMutex("a", WithExpiry(time.Minute)), rs.NewMutex("a", WithTries(1))
		must(t, "lock", true, one.Lock())
		if left := time.Until(one.Until()); left <= 0 || left > time.Minute {
			t.Errorf("until in %v", left)
		}
		for range 3 {
			time.Sleep(40 * time.Second)
			ok, err := one.Extend()
			must(t, "extend", ok, err)
		}
		work := one.Context(t.Context())
		var taken *ErrTaken
		if err := two.Lock(); !errors.As(err, &taken) || !errors.Is(err, mortise.ErrHeld) {
			t.Errorf("before the expiry: %v", err)
		}
		time.Sleep(time.Minute + time.Second)
		must(t, "lock after the expiry", work.Err() != nil, two.Lock())
		if ok, err := one.Unlock(); ok || err != ErrLockAlreadyExpired {
			t.Errorf("unlock after the expiry: %v, %v", ok, err)
		}
		if ok, err := one.Extend(); ok || err != ErrExtendFailed {
			t.Errorf("extend after the expiry: %v, %v", ok, err)
		}
		if valid, _ := one.Valid(); valid || time.Until(one.Until()) > 0 {
			t.Errorf("valid after the expiry: %v, until %v", valid, one.Until())
		}
		if two.Token() <= one.Token() {
			t.Errorf("tokens %d and %d", one.Token(), two.Token())
		}
		ok, err := two.Unlock()
		must(t, "unlock", ok, err)
	})
}

// Until is the end of the expiry or of the lease, whichever is earlier.
func TestUntil(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		for expiry, most := range map[time.Duration]time.Duration{
			time.Hour: 2 * time.Second, 0: 2 * time.Second, 100 * time.Millisecond: 100 * time.Millisecond,
		} { // the TTL is 2 s
			m := New(c.Node(0)).NewMutex("a", WithExpiry(expiry))
			must(t, "lock", true, m.Lock())
			if left := time.Until(m.Until()); left <= 0 || left > most {
				t.Errorf("expiry %v: until in %v, want %v at most", expiry, left, most)
			}
			ok, err := m.Unlock()
			must(t, "unlock", ok, err)
		}
	})
}

// Without WithExpiry the lease is renewed by itself.
func TestALockWithoutExpiryStays(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		m := New(c.Node(0)).NewMutex("a")
		must(t, "lock", true, m.Lock())
		first := m.Until()
		time.Sleep(time.Hour)
		valid, err := m.Valid()
		must(t, "valid", valid, err)
		if !m.Until().After(first.Add(50 * time.Minute)) {
			t.Errorf("until %v, and an hour before %v", m.Until(), first)
		}
		ok, err := m.Unlock()
		must(t, "unlock", ok, err)
		if ok, err := m.Unlock(); ok || err != ErrLockAlreadyExpired {
			t.Errorf("unlock again: %v, %v", ok, err)
		}
	})
}

// Lock waits in the queue for as long as the retries would take, and is served as soon as the lock
// is free.
func TestRetriesAreATimeInTheQueue(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		rs := New(c.Node(0))
		holder := rs.NewMutex("a")
		must(t, "lock", true, holder.Lock())
		begin := time.Now()
		waiter := rs.NewMutex("a", WithTries(4), WithRetryDelayFunc(func(n int) time.Duration {
			return time.Duration(n) * time.Second
		}))
		var taken *ErrTaken
		if err := waiter.Lock(); !errors.As(err, &taken) || errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if took := time.Since(begin); took != 6*time.Second {
			t.Errorf("waited %v, want 1+2+3 s", took)
		}
		time.AfterFunc(2*time.Second, func() { _, _ = holder.Unlock() })
		begin = time.Now()
		must(t, "lock", true, waiter.Lock())
		if took := time.Since(begin); took < 2*time.Second || took > 2100*time.Millisecond {
			t.Errorf("waited %v, want 2 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := holder.LockContext(ctx); err != ErrFailed || !errors.Is(holder.Err(), context.DeadlineExceeded) {
			t.Errorf("the context has ended: %v, because of %v", err, holder.Err())
		}
		ok, err := waiter.Unlock()
		must(t, "unlock", ok, err)
	})
}

func TestALostLockIsReported(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		rs := New(c.Node(0))
		m, again := rs.NewMutex("a"), rs.NewMutex("b", WithSetNXOnExtend())
		must(t, "lock", true, m.Lock())
		must(t, "lock", true, again.Lock())
		first := again.Token()
		c.Lose(0)
		if valid, err := m.Valid(); valid || err != nil {
			t.Errorf("valid: %v, %v", valid, err)
		}
		c.Ready(0)
		if ok, err := m.Unlock(); ok || err != ErrLockAlreadyExpired || !errors.Is(m.Err(), mortise.ErrLost) {
			t.Errorf("unlock: %v, %v, because of %v", ok, err, m.Err())
		}
		ok, err := again.Extend()
		must(t, "extend", ok && again.Token() > first, err)
		ok, err = again.Unlock()
		must(t, "unlock", ok, err)
	})
}

// A Mutex must not say that another holder has the lock if it could not ask.
func TestAnUnreachableGroupIsNoHolder(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		c.Isolate(0)
		time.Sleep(20 * time.Second)
		for _, tries := range []int{1, 5} {
			var taken *ErrTaken
			err := New(c.Node(0)).NewMutex("a", WithTries(tries)).Lock()
			if !errors.Is(err, ErrFailed) || errors.As(err, &taken) {
				t.Errorf("%d tries: %v", tries, err)
			}
		}
		c.Heal()
		c.Ready(0)
	})
}

func TestValues(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		rs := New(c.Node(0))
		m := rs.NewMutex("a", WithGenValueFunc(func() (string, error) { return "orders-0", nil }))
		if m.Name() != "a" || m.Value() != "" || !m.Until().IsZero() || m.Token() != 0 ||
			m.Context(t.Context()).Err() == nil {
			t.Errorf("a new Mutex: %+v", m)
		}
		if ok, err := m.Unlock(); ok || err != ErrLockAlreadyExpired {
			t.Errorf("unlock: %v, %v", ok, err)
		}
		must(t, "lock", true, m.Lock())
		var held *mortise.HeldError
		if err := rs.NewMutex("a").TryLock(); !errors.As(err, &held) || held.Value != "orders-0" || m.Value() != held.Value {
			t.Errorf("%+v, value %q", held, m.Value())
		}
		refused := rs.NewMutex("a", WithValue("orders-0"))
		for what, err := range map[string]error{"lock": refused.Lock(), "unlock": second(refused.Unlock()),
			"extend": second(refused.Extend()), "valid": second(refused.Valid())} {
			if !errors.Is(err, errValue) {
				t.Errorf("%s: %v", what, err)
			}
		}
		failing := errors.New("no entropy")
		if err := rs.NewMutex("b", WithGenValueFunc(func() (string, error) { return "", failing })).Lock(); err != failing {
			t.Error(err)
		}
		ok, err := m.Unlock()
		must(t, "unlock", ok, err)
	})
}

func second(_ bool, err error) error { return err }
