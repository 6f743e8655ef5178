package redsync

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// Each error is one sentence in the words of redsync, with one cause. Err has the cause.
func TestWordsOfErrors(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		rs := New(c.Node(0))
		check := func(what string, m *Mutex, err, sentinel error, words ...string) {
			t.Helper()
			if sentinel != nil && err != sentinel {
				t.Errorf("%s: %v is not %v itself", what, err, sentinel)
			}
			text := m.Err().Error()
			if strings.Count(text, "redsync: ") != 1 || strings.Count(text, "mortise: ") > 1 ||
				strings.Contains(text, "context canceled") {
				t.Errorf("%s: %s", what, text)
			}
			for _, w := range words {
				if strings.Count(text, w) != 1 {
					t.Errorf("%s: %q is not once in %s", what, w, text)
				}
			}
		}
		one, two := rs.NewMutex("a"), rs.NewMutex("a", WithTries(3))
		_, err := two.Unlock()
		check("unlock before", two, err, ErrLockAlreadyExpired, `"a" was never locked by this Mutex`)
		must(t, "lock", true, one.Lock())
		check("lock", two, two.Lock(), nil, "the lock is taken", "not free during all retries", "itself held it")
		check("try", two, two.TryLock(), nil, "the lock is taken", `"a" is held by node-0`)
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		check("a short context", two, two.LockContext(short), ErrFailed, "not acquired", "deadline exceeded")
		must(t, "the holder", one.Err() == nil, nil)
		ok, err := one.Unlock()
		must(t, "unlock", ok, err)
		_, err = one.Unlock()
		check("unlock again", one, err, ErrLockAlreadyExpired, "ended before Unlock", "the lock was released")
		_, err = one.Extend()
		check("extend", one, err, ErrExtendFailed, "not extended", "the lock was released")
		again, other := rs.NewMutex("b", WithSetNXOnExtend()), rs.NewMutex("b")
		must(t, "lock", true, again.Lock())
		ok, err = again.Unlock()
		must(t, "unlock", ok, err)
		must(t, "lock", true, other.Lock())
		_, err = again.Extend()
		check("extend of a taken one", again, err, ErrExtendFailed, "not extended", `"b" is held by node-0`)
		ok, err = other.Unlock()
		must(t, "unlock", ok, err)
		c.Isolate(0)
		time.Sleep(20 * time.Second)
		check("no leader", two, two.Lock(), nil, "not acquired", "no leader of the group was reached during all retries")
		c.Heal()
		c.Ready(0)
	})
}

// A Mutex that has given up does not get the lock later, and a loss ends no loop of retries: the
// next Lock succeeds.
func TestGivingUpAndGoingOn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, c *mortisetest.Cluster) {
		one, two := New(c.Node(0)).NewMutex("a"), New(c.Node(1)).NewMutex("a", WithTries(2))
		must(t, "lock", true, one.Lock())
		var taken *ErrTaken
		if err := two.Lock(); !errors.As(err, &taken) {
			t.Error(err)
		}
		c.Lose(0)
		c.Ready(0)
		time.Sleep(time.Minute)
		if info, err := c.Node(2).Peek(t.Context(), "a"); err != nil || info.Held > 0 {
			t.Errorf("a minute later %d hold the lock: %v", info.Held, err)
		}
		if ok, err := one.Extend(); ok || err != ErrExtendFailed || !errors.Is(one.Err(), mortise.ErrLost) {
			t.Errorf("extend: %v, %v, because of %v", ok, err, one.Err())
		}
		must(t, "lock again", true, one.Lock())
		must(t, "the error of a held lock", one.Err() == nil, nil)
		ok, err := one.Unlock()
		must(t, "unlock", ok, err)
	})
}
