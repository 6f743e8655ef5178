package redsync

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortisedropin/internal/hold"
	"github.com/mortise-lock/mortise/mortisetest"
)

// TestEachMethodAfterEachEnd compares the results of all methods of a Mutex that was never locked,
// is locked, has expired, was unlocked or is lost, and what Err reports after each.
func TestEachMethodAfterEachEnd(t *testing.T) {
	const never = `"a" was never locked by this Mutex`
	type state struct {
		end    func(c *mortisetest.Cluster, m *Mutex)
		held   bool
		locked bool // it was locked once
		left   time.Duration
		reason error
		cause  string
	}
	for what, s := range map[string]state{
		"never": {end: nil, cause: never},
		"held": {end: func(*mortisetest.Cluster, *Mutex) { time.Sleep(20 * time.Second) }, held: true, locked: true,
			left: 40 * time.Second},
		"expired": {end: func(*mortisetest.Cluster, *Mutex) { time.Sleep(time.Minute) }, locked: true, left: -1,
			reason: hold.ErrExpired, cause: "the expiry of the lock has passed"},
		"unlocked": {end: func(_ *mortisetest.Cluster, m *Mutex) { _, _ = m.Unlock() }, locked: true, left: -1,
			reason: mortise.ErrUnlocked, cause: "mortise: the lock was released"},
		"lost": {end: func(c *mortisetest.Cluster, _ *Mutex) { c.Lose(0); c.Ready(0) }, locked: true, left: -1,
			reason: mortise.ErrLost, cause: ""},
	} {
		inEach := func(method string, call func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string))) {
			synctest.Test(t, func(t *testing.T) {
				c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true})
				m := New(c.Node(0)).NewMutex("a", WithExpiry(time.Minute), WithTries(1))
				if s.end != nil {
					must(t, "lock", true, m.Lock())
					s.end(c, m)
				}
				synctest.Wait()
				call(t, m, func(err, sentinel error, prefix string) {
					t.Helper()
					if s.held {
						if err != nil || m.hold != nil && method != "Unlock" && m.Err() != nil {
							t.Errorf("%s, %s: %v, because of %v", what, method, err, m.Err())
						}
						return
					}
					cause := s.cause
					if s.reason == mortise.ErrLost {
						cause = m.hold.Err().Error()
					}
					if now := m.Err(); err != sentinel || now == nil || now.Error() != prefix+cause ||
						s.reason != nil && !errors.Is(now, s.reason) || sentinel != nil && !errors.Is(now, sentinel) {
						t.Errorf("%s, %s: %v, because of %v, want %v, %s%s", what, method, err, now, sentinel, prefix, cause)
					}
				})
			})
		}
		begin := `redsync: the lock of "a" has ended: `
		if !s.locked {
			begin = "redsync: "
		}
		inEach("Err", func(_ *testing.T, _ *Mutex, check func(err, sentinel error, prefix string)) { check(nil, nil, begin) })
		inEach("Valid", func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string)) {
			if valid, err := m.Valid(); valid != s.held || err != nil {
				t.Errorf("%s: valid: %v, %v", what, valid, err)
			}
			check(nil, nil, begin)
		})
		inEach("Until", func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string)) {
			lease := m.node.Status().LeaseFor
			switch until := m.Until(); {
			case !s.locked:
				if !until.IsZero() {
					t.Errorf("%s: until %v", what, until)
				}
			case s.held:
				if left := time.Until(until); left != min(s.left, lease) {
					t.Errorf("%s: until in %v, lease %v", what, left, lease)
				}
			default:
				if left := time.Until(until); left != s.left {
					t.Errorf("%s: until in %v, want %v", what, left, s.left)
				}
			}
			check(nil, nil, begin)
		})
		inEach("Unlock", func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string)) {
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			ok, err := m.UnlockContext(ended)
			if ok != s.held {
				t.Errorf("%s: unlock: %v", what, ok)
			}
			check(err, ErrLockAlreadyExpired, "redsync: the lock had ended before Unlock: ")
		})
		inEach("Extend", func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string)) {
			ok, err := m.Extend()
			if ok != s.held {
				t.Errorf("%s: extend: %v", what, ok)
			}
			if until, _ := m.hold, 0; s.held {
				if at, _ := until.Until(); time.Until(at) != time.Minute {
					t.Errorf("%s: until in %v after Extend", what, time.Until(at))
				}
			}
			check(err, ErrExtendFailed, "redsync: the lock was not extended: ")
		})
		inEach("Context", func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string)) {
			type key struct{}
			ctx := m.Context(context.WithValue(t.Context(), key{}, 1))
			synctest.Wait()
			cause := context.Cause(ctx)
			if (cause == nil) != s.held || ctx.Value(key{}) != 1 || !s.locked && cause.Error() != never ||
				s.reason == mortise.ErrLost && !errors.Is(cause, mortise.ErrLost) {
				t.Errorf("%s: the context has ended: %v", what, cause)
			}
			check(nil, nil, begin)
		})
		inEach("Token", func(t *testing.T, m *Mutex, check func(err, sentinel error, prefix string)) {
			token, value := mortise.Token(0), ""
			if s.locked {
				token = m.hold.Lock().Token()
				value = strconv.FormatUint(uint64(token), 10)
			}
			if m.Token() != token || m.Value() != value || m.Name() != "a" || s.locked && token == 0 {
				t.Errorf("%s: %d, %q, %q", what, m.Token(), m.Value(), m.Name())
			}
			check(nil, nil, begin)
		})
	}
}

// TestARefusedMutex compares the results of all methods of a Mutex with WithValue, which holds
// nothing.
func TestARefusedMutex(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		m := New(c.Node(0)).NewMutex("a", WithValue("x"), WithSetNXOnExtend())
		for what, err := range map[string]error{"Lock": m.Lock(), "TryLock": m.TryLock(),
			"LockContext": m.LockContext(t.Context()), "Context": context.Cause(m.Context(t.Context()))} {
			if err != errValue {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, call := range map[string]func() (bool, error){"Unlock": m.Unlock, "Extend": m.Extend, "Valid": m.Valid} {
			if ok, err := call(); ok || err != errValue {
				t.Errorf("%s: %v, %v", what, ok, err)
			}
		}
		if m.Token() != 0 || m.Value() != "" || !m.Until().IsZero() {
			t.Errorf("%d, %q, %v", m.Token(), m.Value(), m.Until())
		}
		c.Await("a", 0, 0)
	})
}

// TestHowLongLockWaits compares the waits of each setting for retries, and the numbers that the
// function for the delays gets.
func TestHowLongLockWaits(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
		rs := New(c.Node(0))
		holder := rs.NewMutex("a")
		must(t, "lock", true, holder.Lock())
		var got []int
		delays := WithRetryDelayFunc(func(n int) time.Duration {
			got = append(got, n)
			return time.Duration(n) * time.Second
		})
		ends := WithRetryDelayFunc(func(n int) time.Duration {
			got = append(got, n)
			return time.Duration(3-n) * time.Second
		})
		for _, w := range []struct {
			options []Option
			atLeast time.Duration
			atMost  time.Duration
			numbers string
		}{
			{nil, 31 * 50 * time.Millisecond, 31 * 250 * time.Millisecond, "[]"},
			{[]Option{WithRetryDelay(time.Second)}, 31 * time.Second, 31 * time.Second, "[]"},
			{[]Option{WithRetryDelay(0)}, 0, 0, "[]"},
			{[]Option{WithTries(-1), delays}, 0, 0, "[]"},
			{[]Option{WithTries(0), delays}, 0, 0, "[]"},
			{[]Option{WithTries(1), delays}, 0, 0, "[]"},
			{[]Option{WithTries(2), delays}, time.Second, time.Second, "[1]"},
			{[]Option{WithTries(4), delays}, 6 * time.Second, 6 * time.Second, "[1 2 3]"},
			{[]Option{WithTries(9), ends}, 3 * time.Second, 3 * time.Second, "[1 2 3]"},
			{[]Option{WithTries(4), WithRetryDelay(time.Second), WithDriftFactor(9), WithTimeoutFactor(9), WithFailFast(true),
				WithShufflePools(true)}, 3 * time.Second, 3 * time.Second, "[]"},
		} {
			got = nil
			m, begin := rs.NewMutex("a", w.options...), time.Now()
			err := m.Lock()
			var taken *ErrTaken
			if took := time.Since(begin); !errors.As(err, &taken) || taken.Nodes != nil || took < w.atLeast || took > w.atMost ||
				fmt.Sprint(got) != w.numbers || m.Err() != err {
				t.Errorf("%v after %v, delays %v, want %v to %v, %s", err, took, got, w.atLeast, w.atMost, w.numbers)
			}
			got, begin = nil, time.Now()
			if err := m.TryLock(); !errors.As(err, &taken) || !time.Now().Equal(begin) || len(got) > 0 {
				t.Errorf("TryLock: %v after %v, delays %v", err, time.Since(begin), got)
			}
		}
		var none context.Context
		m, low, high := rs.NewMutex("b"), time.Hour, time.Duration(0)
		must(t, "lock without a context", true, m.LockContext(none))
		for i := range 1000 {
			d := m.delay(i)
			low, high = min(low, d), max(high, d)
		}
		if low < minDelay || high >= maxDelay || low > minDelay+20*time.Millisecond || high < maxDelay-20*time.Millisecond {
			t.Errorf("delays of %v to %v", low, high)
		}
		for _, m := range []*Mutex{m, holder} {
			ok, err := m.Unlock()
			must(t, "unlock", ok, err)
		}
	})
}

// TestExtendTakesTheLockAgain compares the results of Extend after an expiry, with and without
// WithSetNXOnExtend, for a free lock and a taken one.
func TestExtendTakesTheLockAgain(t *testing.T) {
	for _, s := range []struct{ again, taken bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		inBubble(t, 1, func(t *testing.T, c *mortisetest.Cluster) {
			options := []Option{WithExpiry(time.Minute)}
			if s.again {
				options = append(options, WithSetNXOnExtend())
			}
			m, other := New(c.Node(0)).NewMutex("a", options...), New(c.Node(0)).NewMutex("a")
			must(t, "lock", true, m.Lock())
			first := m.Token()
			time.Sleep(time.Minute)
			if s.taken {
				must(t, "lock", true, other.Lock())
			}
			begin := time.Now()
			ok, err := m.Extend()
			want := s.again && !s.taken
			if ok != want || want && (err != nil || m.Token() <= first || m.Err() != nil) ||
				!want && (err != ErrExtendFailed || m.Token() != first) || time.Now() != begin {
				t.Errorf("%+v: %v, %v, tokens %d and %d, after %v", s, ok, err, first, m.Token(), time.Since(begin))
			}
			if err := m.Err(); !want && (!errors.Is(err, ErrExtendFailed) ||
				errors.Is(err, mortise.ErrHeld) != (s.again && s.taken) ||
				errors.Is(err, hold.ErrExpired) != !s.again) {
				t.Errorf("%+v: because of %v", s, err)
			}
			if want {
				ok, err := m.Unlock()
				must(t, "unlock", ok, err)
			}
			if s.taken {
				ok, err := other.Unlock()
				must(t, "unlock", ok, err)
			}
		})
	}
}
