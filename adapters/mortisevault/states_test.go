package mortisevault

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/vault/sdk/physical"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
)

// TestEachMethodInEachState calls each method of a lock in each state, and compares all that it
// returns, how long it takes, and the holder of the lock after it. No goroutine is left.
func TestEachMethodInEachState(t *testing.T) {
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	lock := func(t *testing.T, l physical.Lock) <-chan struct{} {
		t.Helper()
		lost, err := l.Lock(nil)
		must(t, err)
		return lost
	}
	type want struct {
		lock    error  // of Lock; errHeld stands for an error of the package
		granted bool   // Lock returns a channel
		unlock  error  // of Unlock
		held    bool   // by Value
		value   string // by Value
	}
	errHeld := errors.New("is already locked by this lock")
	for state, s := range map[string]struct {
		begin func(t *testing.T, c *mortisetest.Cluster, l physical.Lock)
		want  want
	}{
		"unlocked": {func(*testing.T, *mortisetest.Cluster, physical.Lock) {}, want{nil, true, nil, false, ""}},
		"held": {func(t *testing.T, _ *mortisetest.Cluster, l physical.Lock) { lock(t, l) },
			want{errHeld, false, nil, true, "own"}},
		"unlocked again": {func(t *testing.T, _ *mortisetest.Cluster, l physical.Lock) {
			lost := lock(t, l)
			must(t, l.Unlock())
			<-lost
		}, want{nil, true, nil, false, ""}},
		"lost": {func(t *testing.T, c *mortisetest.Cluster, l physical.Lock) {
			lost := lock(t, l)
			c.Lose(0)
			<-lost
			c.Ready(0)
			c.Await("vault/core/lock", 0, 0)
		}, want{nil, true, mortise.ErrLost, false, ""}},
		"of another": {func(t *testing.T, c *mortisetest.Cluster, _ physical.Lock) {
			lock(t, lockOf(t, c, 1, "other", Options{}))
		}, want{nil, false, nil, true, "other"}},
	} {
		for _, method := range []string{"Lock", "Unlock", "Value"} {
			synctest.Test(t, func(t *testing.T) {
				c := mortisetest.NewWith(t, 2, mortisetest.Options{MayHold: true})
				l := lockOf(t, c, 0, "own", Options{})
				s.begin(t, c, l)
				stop, held, value := make(chan struct{}), s.want.held, s.want.value
				time.AfterFunc(3*time.Second, func() { close(stop) })
				begin, took := time.Now(), time.Duration(0)
				switch method {
				case "Lock":
					lost, err := l.Lock(stop)
					if (err == nil) != (s.want.lock == nil) || (lost != nil) != s.want.granted {
						t.Errorf("%s: Lock: %v, %v", state, lost, err)
					}
					if s.want.lock == nil && !s.want.granted {
						took = 3 * time.Second
					}
					if s.want.granted {
						held, value = true, "own"
						select {
						case <-lost:
							t.Errorf("%s: the lock is lost at once", state)
						default:
						}
					}
				case "Unlock":
					if err := l.Unlock(); !errors.Is(err, s.want.unlock) || s.want.unlock == nil && err != nil {
						t.Errorf("%s: Unlock: %v", state, err)
					}
					if held && value == "own" {
						held, value = false, ""
					}
					if err := l.Unlock(); err != nil {
						t.Errorf("%s: a second Unlock: %v", state, err)
					}
				}
				if after := time.Since(begin).Round(100 * time.Millisecond); after != took {
					t.Errorf("%s: %s took %v, want %v", state, method, after, took)
				}
				if h, v, err := l.Value(); h != held || v != value || err != nil {
					t.Errorf("%s, %s: Value: %v, %q, %v, want %v, %q", state, method, h, v, err, held, value)
				}
				time.Sleep(5 * time.Second) // also after the end of stop
				info, err := c.Node(1).Peek(t.Context(), "vault/core/lock")
				if err != nil || (info.Held == 1) != held || len(info.Queue) != info.Held ||
					held && (info.Queue[0].Value != value || info.Queue[0].Labels["mortise.purpose"] != "election") {
					t.Errorf("%s, %s: %+v, %v", state, method, info, err)
				}
			})
		}
	}
}

// TestAnswersOfANodeThatIsCutOff compares how long each method waits, and its error.
func TestAnswersOfANodeThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		l := lockOf(t, c, 0, "own", Options{Prefix: "p/"})
		mustLock(t, l)
		c.Isolate(0)
		for _, s := range []struct {
			begin string
			call  func() error
		}{
			{`mortisevault: unlock "p/core/lock": `, l.Unlock},
			{`mortisevault: value of "p/core/lock": `, func() error { _, _, err := l.Value(); return err }},
		} {
			begin := time.Now()
			err := s.call()
			if took := time.Since(begin).Round(time.Millisecond); took != answerTime ||
				!errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), s.begin) {
				t.Errorf("%v after %v, want %s", err, took, s.begin)
			}
		}
		c.Heal()
		c.Ready(0)
	})
}

// TestThePrefix compares the keys of locks for each Prefix.
func TestThePrefix(t *testing.T) {
	for prefix, want := range map[string]string{"": "vault/k", "p/": "p/k"} {
		l, err := New(nil, nil, Options{Prefix: prefix}).LockWith("k", "v")
		if got := l.(*lock); err != nil || got.key != want || got.value != "v" || got.held != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
}

// TestTheContextsOfCallsEnd checks that no context of a call to the node outlives the call, with
// its timer.
func TestTheContextsOfCallsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []context.Context
		c := mortisetest.NewWith(t, 1, mortisetest.Options{MayHold: true, Configure: func(_ int, c *mortise.Config) {
			c.Hooks = &mortise.Hooks{
				Acquired: func(ctx context.Context, _ mortise.LockEvent) any { all = append(all, ctx); return nil },
				Unlocked: func(ctx context.Context, _ mortise.LockEvent) { all = append(all, ctx) }}
		}})
		l := lockOf(t, c, 0, "own", Options{})
		if _, err := l.Lock(nil); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(); err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 {
			t.Errorf("%d calls", len(all))
		}
		for i, ctx := range all {
			if ctx.Err() == nil {
				t.Errorf("the context of call %d goes on", i)
			}
		}
	})
}
