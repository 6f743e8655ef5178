package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/lapse"
)

// stickily and resuming are requests in tests, besides mortise.Request.
type stickily struct {
	key string
	mortise.StickyOptions
}

type resuming struct {
	key   string
	token mortise.Token
	mortise.ResumeOptions
}

// acquire calls the method of n for a mortise.Request, a stickily or a resuming.
func acquire(ctx context.Context, n interface {
	Acquire(context.Context, mortise.Request) (*mortise.Lock, error)
	LockSticky(context.Context, string, mortise.StickyOptions) (*mortise.Lock, error)
	Resume(context.Context, string, mortise.Token, mortise.ResumeOptions) (*mortise.Lock, error)
}, r any) (*mortise.Lock, error) {
	switch r := r.(type) {
	case stickily:
		return n.LockSticky(ctx, r.key, r.StickyOptions)
	case resuming:
		return n.Resume(ctx, r.key, r.token, r.ResumeOptions)
	}
	return n.Acquire(ctx, r.(mortise.Request))
}

func (f *fleet) acquire(i int, r any) *mortise.Lock {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Minute)
	defer cancel()
	l, err := acquire(ctx, f.nodes[i], r)
	if err != nil {
		f.t.Fatalf("node %d: %v", i, err)
	}
	return l
}

func (f *fleet) later(i int, r any) <-chan *mortise.Lock {
	granted := make(chan *mortise.Lock, 1)
	go func() {
		if l, err := acquire(f.t.Context(), f.nodes[i], r); err == nil {
			granted <- l
		}
	}()
	time.Sleep(50 * time.Millisecond) // the request is in its queue
	return granted
}

// A call of waits fails the test if the lock was granted. A call of comes fails the test if the
// lock was not granted.
func waits(t *testing.T, who string, granted <-chan *mortise.Lock) {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	select {
	case <-granted:
		t.Fatalf("%s was granted", who)
	default:
	}
}

func comes(t *testing.T, who string, granted <-chan *mortise.Lock) *mortise.Lock {
	t.Helper()
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
	select {
	case l := <-granted:
		return l
	default:
		t.Fatalf("%s was not granted", who)
		return nil
	}
}

func TestReadersShareAndWritersDoNot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		read, write := mortise.Request{Key: "k", Mode: mortise.Shared}, mortise.Request{Key: "k"}
		one, two := f.acquire(0, read), f.acquire(1, read)
		writer := f.later(2, write)
		late := f.later(0, read)
		waits(t, "a writer beside readers", writer)
		waits(t, "a reader behind a writer", late)
		unlock(t, one)
		waits(t, "a writer beside a reader", writer)
		unlock(t, two)
		w := comes(t, "the writer", writer)
		waits(t, "a reader beside a writer", late)
		if _, err := f.nodes[1].Acquire(t.Context(), mortise.Request{Key: "k", Mode: mortise.Shared,
			Try: true}); !errors.Is(err, mortise.ErrHeld) {
			t.Errorf("a reader tries beside a writer: %v", err)
		}
		unlock(t, w)
		r := comes(t, "the late reader", late)
		if r.Token() <= w.Token() || w.Token() <= two.Token() {
			t.Errorf("tokens %d, %d, %d", two.Token(), w.Token(), r.Token())
		}
		unlock(t, r)
		f.nothingLeft()
	})
}

func TestSemaphoreGivesAsManyPermitsAsThereAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		var held, most atomic.Int64
		done := make(chan struct{})
		for i := range 30 {
			go func() {
				defer func() { done <- struct{}{} }()
				permits := 1 + i%3
				l := f.acquire(i%3, mortise.Request{Key: "pool", Mode: mortise.Permits(permits, 4)})
				if now := held.Add(int64(permits)); now > most.Load() {
					most.Store(now)
				}
				time.Sleep(100 * time.Millisecond)
				held.Add(-int64(permits))
				unlock(t, l)
			}()
		}
		for range 30 {
			<-done
		}
		if n := most.Load(); n != 4 {
			t.Errorf("%d permits of 4 were held together, want 4", n)
		}
		f.nothingLeft()
	})
}

func TestSeveralKeysAtOnce(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		b := f.lock(0, "b")
		all := f.later(1, mortise.Request{Key: "c", Also: []mortise.Part{{Key: "a"}, {Key: "b"}, {Key: "a"}}})
		waits(t, "the request for a, b and c", all)
		c := f.later(2, mortise.Request{Key: "c"})
		waits(t, "the later request for c", c)
		unlock(t, b)
		l := comes(t, "the request for a, b and c", all)
		if l.Token() <= b.Token() {
			t.Errorf("token %d after %d", l.Token(), b.Token())
		}
		for _, key := range []string{"a", "b", "c"} {
			var held *mortise.HeldError
			if _, err := f.nodes[0].TryLock(t.Context(), key); !asHeld(err, &held) || held.Token != l.Token() ||
				held.Key != key {
				t.Errorf("%s: %v", key, err)
			}
		}
		var held *mortise.HeldError
		if _, err := f.nodes[0].Acquire(t.Context(), mortise.Request{Key: "z", Also: []mortise.Part{{Key: "b"}},
			Try: true}); !asHeld(err, &held) || held.Key != "b" {
			t.Errorf("a try for z and b: %v", err)
		}
		unlock(t, l)
		unlock(t, comes(t, "the later request for c", c))
		unlock(t, f.acquire(0, mortise.Request{Key: "a", Try: true,
			Also: []mortise.Part{{Key: "b"}, {Key: "c"}, {Key: "z"}}}))
		f.nothingLeft()
	})
}

// TestSeveralKeysInAnyOrder checks that requests for the same keys in opposite orders cannot
// deadlock.
func TestSeveralKeysInAnyOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		done := make(chan struct{})
		for i := range 60 {
			go func() {
				defer func() { done <- struct{}{} }()
				keys := []string{"a", "b", "c"}
				mode := mortise.Exclusive
				if i%5 == 0 {
					mode = mortise.Shared
				}
				unlock(t, f.acquire(i%3, mortise.Request{Key: keys[i%3], Mode: mode,
					Also: []mortise.Part{{Key: keys[(i+1+i%2)%3], Mode: mode}}}))
			}()
		}
		for range 60 {
			<-done
		}
		f.nothingLeft()
	})
}

func TestRequestsAreChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		many := make([]mortise.Part, 256)
		for i := range many {
			many[i].Key = fmt.Sprint("many/", i)
		}
		for name, c := range map[string]struct {
			request mortise.Request
			want    error
			field   string
		}{
			"too many keys": {mortise.Request{Key: "a", Also: many}, mortise.ErrBadRequest, "257 keys"},
			"no permits":    {mortise.Request{Key: "a", Mode: mortise.Permits(0, 2)}, mortise.ErrBadRequest, "Permits(0, 2)"},
			"more than there": {mortise.Request{Key: "a", Mode: mortise.Permits(3, 2)}, mortise.ErrBadRequest,
				"Permits(3, 2)"},
			"negative": {mortise.Request{Key: "a", Mode: mortise.Permits(-1, 2)}, mortise.ErrBadRequest,
				"Permits(less than 0, 2)"},
			"no mode": {mortise.Request{Key: "a", Mode: 7}, mortise.ErrBadRequest, "Request.Mode is the number 7"},
			"a mode of a part": {mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}, {Key: "c", Mode: 7}}},
				mortise.ErrBadRequest, "Request.Also[1].Mode"},
			"several permits": {mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b", Mode: mortise.Permits(1, 2)}}},
				mortise.ErrBadRequest, "Request.Also[0].Mode is 1 of 2"},
			"waiting": {mortise.Request{Key: "a", MaxWaiting: -1}, mortise.ErrBadRequest, "MaxWaiting"},
			"hold":    {mortise.Request{Key: "a", MaxHold: -1}, mortise.ErrBadRequest, "MaxHold"},
			"idle":    {mortise.Request{Key: "a", MaxIdle: -1}, mortise.ErrBadRequest, "MaxIdle"},
			"too short an idle": {mortise.Request{Key: "a", MaxIdle: 99 * time.Millisecond}, mortise.ErrBadRequest,
				"MaxIdle is 99ms; want 0 (no limit), or 100ms or more"},
			"delay": {mortise.Request{Key: "a", LockDelay: 8 * 24 * time.Hour}, mortise.ErrBadRequest,
				"LockDelay"},
			"value": {mortise.Request{Key: "a", Value: strings.Repeat("x", 1025)}, mortise.ErrBadRequest,
				"Value"},
			"empty key": {mortise.Request{Key: "a", Also: []mortise.Part{{Key: ""}}}, mortise.ErrBadKey, ""},
			"bad key":   {mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b\n"}}}, mortise.ErrBadKey, ""},
		} {
			if l, err := f.nodes[0].Acquire(t.Context(), c.request); l != nil || !errors.Is(err, c.want) ||
				!strings.Contains(err.Error(), c.field) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := f.nodes[0].LockAll(t.Context()); !errors.Is(err, mortise.ErrBadRequest) {
			t.Errorf("LockAll without keys: %v", err)
		}
		unlock(t, f.acquire(0, mortise.Request{Key: "a", Mode: mortise.Permits(1, 1)}))
		f.nothingLeft()
	})
}

func TestMaxWaitingAndValue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "k", Value: "counts the stock"})
		first := f.later(1, mortise.Request{Key: "k", MaxWaiting: 1})
		if _, err := f.nodes[2].Acquire(t.Context(), mortise.Request{Key: "k", MaxWaiting: 1}); !errors.Is(err,
			mortise.ErrQueueFull) {
			t.Errorf("one waits already: %v", err)
		}
		var held *mortise.HeldError
		if _, err := f.nodes[2].TryLock(t.Context(), "k"); !asHeld(err, &held) || held.Value != "counts the stock" ||
			!strings.Contains(err.Error(), "counts the stock") {
			t.Errorf("%v", err)
		}
		unlock(t, l)
		unlock(t, comes(t, "the only waiter", first))
		f.nothingLeft()
	})
}

func TestPrefixesLimitTheWaiters(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		for i := range 2 {
			c := f.config(i, 2)
			c.MaxWaiting = map[string]int{"": 3, "a/": 2, "a/b/": 1}
			f.start(i, c)
		}
		unlock(t, f.lock(1, "free")) // so that the other instance has a session
		for key, most := range map[string]int{"x": 3, "a/c": 2, "a/b/c": 1} {
			l := f.lock(0, key)
			var waiting []<-chan *mortise.Lock
			for range most {
				waiting = append(waiting, f.later(1, mortise.Request{Key: key, MaxWaiting: 10}))
			}
			for _, r := range []mortise.Request{{Key: key}, {Key: key, Mode: mortise.Shared},
				{Key: "free", Also: []mortise.Part{{Key: key}}}, {Key: key, Tree: true}} {
				_, err := f.nodes[0].Acquire(t.Context(), r)
				wantIs(t, err, mortise.ErrQueueFull)
			}
			_, err := f.nodes[0].Acquire(t.Context(), mortise.Request{Key: key, MaxWaiting: 1})
			wantIs(t, err, mortise.ErrQueueFull)
			_, err = f.nodes[0].TryLock(t.Context(), key)
			wantIs(t, err, mortise.ErrHeld)
			sticky := f.later(0, stickily{key: key})
			unlock(t, l)
			for _, w := range waiting {
				unlock(t, comes(t, key, w))
			}
			unlock(t, comes(t, "the sticky one", sticky))
		}
	})
}

func TestALockIsEnteredAgainUnderItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 2)
		n := f.nodes[0]
		l := f.acquire(0, mortise.Request{Key: "a", Also: []mortise.Part{{Key: "b"}}})
		ctx := l.Context(t.Context())
		again, err := n.Lock(ctx, "b")
		if err != nil || again.Token() != l.Token() {
			t.Fatalf("%v", err)
		}
		reader, err := n.RLock(again.Context(ctx), "a")
		if err != nil {
			t.Fatal(err)
		}
		other := f.later(1, mortise.Request{Key: "a"})
		for _, l := range []*mortise.Lock{l, again} {
			unlock(t, l)
			wantIs(t, l.Err(), mortise.ErrUnlocked)
			unlock(t, l)
			waits(t, "another instance", other)
		}
		if err := reader.Err(); err != nil {
			t.Error(err)
		}
		unlock(t, reader)
		wantIs(t, reader.Err(), mortise.ErrUnlocked)
		<-ctx.Done() // a goroutine of the node ends the context soon
		wantIs(t, context.Cause(ctx), mortise.ErrUnlocked)
		unlock(t, comes(t, "another instance", other))

		if err := n.Do(t.Context(), "k", func(ctx context.Context, outer mortise.Token) error {
			return n.Do(ctx, "k", func(_ context.Context, inner mortise.Token) error {
				if inner != outer {
					t.Errorf("token %d within %d", inner, outer)
				}
				return nil
			})
		}); err != nil {
			t.Error(err)
		}
		if _, err := n.Lock(ctx, "a"); !errors.Is(err, context.Canceled) {
			t.Errorf("under a lock that has ended: %v", err)
		}
		f.nothingLeft()
	})
}

func TestALostLockIsNotEnteredAgain(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(0, "k")
		ctx := context.WithoutCancel(l.Context(t.Context()))
		again, err := f.nodes[0].Lock(ctx, "k")
		if err != nil {
			t.Fatal(err)
		}
		f.isolate(0)
		<-l.Done()
		wantIs(t, again.Err(), mortise.ErrLost)
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		wantIs(t, again.Unlock(t.Context()), mortise.ErrLost)
		f.rejoin(0)
		anew, err := f.nodes[0].Lock(ctx, "k")
		if err != nil || anew.Token() <= l.Token() {
			t.Fatalf("%v", err)
		}
		unlock(t, anew)
		f.nothingLeft()
	})
}

func TestDeadlockIsToldToTheYoungest(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		var locks []*mortise.Lock
		keys := []string{"a", "b", "c"}
		for i, key := range keys {
			locks = append(locks, f.lock(i, key))
		}
		second := func(i int) (*mortise.Lock, error) {
			return f.nodes[i].Lock(locks[i].Context(t.Context()), keys[(i+1)%3])
		}
		granted := make(chan *mortise.Lock, 2)
		for i := range 2 {
			go func() {
				l, err := second(i)
				if err != nil {
					t.Errorf("node %d: %v", i, err)
				}
				granted <- l
			}()
			time.Sleep(50 * time.Millisecond)
		}
		_, err := second(2)
		var deadlock *mortise.DeadlockError
		if !errors.As(err, &deadlock) || len(deadlock.Circle) != 3 {
			t.Fatalf("%v", err)
		}
		want := `mortise: deadlock: node-2 waits for "a", node-0 waits for "b", node-1 waits for "c"`
		if deadlock.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
		unlock(t, locks[2])
		unlock(t, <-granted)
		unlock(t, locks[1])
		unlock(t, <-granted)
		unlock(t, locks[0])

		reader := f.acquire(0, mortise.Request{Key: "r", Mode: mortise.Shared})
		if _, err := f.nodes[0].Lock(reader.Context(t.Context()), "r"); !errors.As(err, &deadlock) {
			t.Errorf("a reader becomes a writer: %v", err)
		}
		unlock(t, reader)
		f.nothingLeft()
	})
}

func TestMaxHoldEndsAHoldByTheClock(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "k", MaxHold: time.Minute})
		next := f.later(1, mortise.Request{Key: "k"})
		ctx := l.Context(t.Context())
		time.Sleep(50 * time.Second)
		if err := l.Err(); err != nil {
			t.Fatalf("before its end: %v", err)
		}
		waits(t, "the next", next)
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, mortise.ErrLost) ||
			!strings.Contains(err.Error(), "as long as its request allows") {
			t.Errorf("%v", err)
		}
		wantIs(t, l.Unlock(t.Context()), mortise.ErrLost)
		unlock(t, comes(t, "the next", next))
		unlock(t, f.acquire(0, mortise.Request{Key: "k", MaxHold: time.Minute}))
		f.nothingLeft()
	})
}

// TestAnOverdueHoldKeepsItsDelay checks that after the end of MaxHold the next waiter waits for the
// LockDelay, because code under the lock may still run.
func TestAnOverdueHoldKeepsItsDelay(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.acquire(0, mortise.Request{Key: "k", MaxHold: time.Minute, LockDelay: 20 * time.Second})
		next := f.later(1, mortise.Request{Key: "k"})
		<-l.Done()
		lost := time.Now()
		unlock(t, <-next)
		if waited := time.Since(lost); waited < 20*time.Second || waited > 22*time.Second {
			t.Errorf("the next had the lock %v after the loss, want the delay", waited)
		}
		gone := f.acquire(0, mortise.Request{Key: "j"})
		err := gone.Detach(lapse.Because(t.Context(), "its client died"))
		if err != nil || gone.Err() != mortise.ErrUnlocked {
			t.Errorf("%v, %v", err, gone.Err())
		}
		unlock(t, f.acquire(1, mortise.Request{Key: "j"}))
		ends, err := f.nodes[1].Audit(t.Context())
		if err != nil || len(ends) != 3 {
			t.Fatalf("%+v, %v", ends, err)
		}
		if e := ends[0]; e.Kind != mortise.EventLeft || e.Cause != mortise.OutcomeExpired || e.Token != l.Token() ||
			!strings.Contains(e.Reason, "held for 1m0s") {
			t.Errorf("the audit has %+v", e)
		}
		if e := ends[2]; e.Kind != mortise.EventFreed || e.Cause != mortise.OutcomeExpired || e.Token != gone.Token() ||
			e.Reason != "its client died" {
			t.Errorf("the audit has %+v", e)
		}
		f.nothingLeft()
	})
}

func TestAHolderIsToldThatACallWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		told := func(l *mortise.Lock) bool {
			synctest.Wait()
			select {
			case <-l.Wanted():
				return true
			default:
				return false
			}
		}
		leader := f.leader()
		a, b := (leader+1)%3, (leader+2)%3
		l, indifferent := f.acquire(a, mortise.Request{Key: "k", Notice: true}), f.lock(a, "l")
		if told(l) {
			t.Error("told, although no call waits yet")
		}
		next, other := f.later(b, mortise.Request{Key: "k", Notice: true}), f.later(b, mortise.Request{Key: "l"})
		if !told(l) || told(indifferent) {
			t.Errorf("the holder with Notice was told: %v, the one without: %v", told(l), told(indifferent))
		}
		last := f.later(a, mortise.Request{Key: "k"})
		unlock(t, l)
		second := comes(t, "the next", next)
		if !told(second) {
			t.Error("a holder that is granted while a call waits is not told")
		}
		unlock(t, second)
		unlock(t, comes(t, "the last", last))
		unlock(t, indifferent)
		unlock(t, comes(t, "the request for l", other))

		again := f.acquire(a, mortise.Request{Key: "m", Notice: true})
		f.crash(leader)
		third := f.later(b, mortise.Request{Key: "m"})
		time.Sleep(5 * time.Second)
		if !told(again) {
			t.Error("a new leader does not tell the holder")
		}
		unlock(t, again)
		unlock(t, comes(t, "the request for m", third))
		f.nothingLeft()
	})
}

func TestLockDelayAfterTheEndOfItsHolder(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 4)
		holder := f.follower()
		l := f.acquire(holder, mortise.Request{Key: "k", LockDelay: 30 * time.Second,
			Value: "writes to a disk that knows no tokens"})
		plain := f.lock(holder, "plain")
		token := l.Token()
		f.crash(holder)
		crashed := time.Now()
		other := f.follower()
		got := f.lock(other, "plain")
		ttl := time.Since(crashed)
		if got.Token() <= plain.Token() {
			t.Error("tokens")
		}
		info := f.peek(other, "k")
		if first := info.Queue[0]; !first.Expired || first.Token != token || first.Left <= 20*time.Second ||
			first.Left > 30*time.Second {
			t.Errorf("%+v", first)
		}
		if held, err := f.nodes[other].Check(brief(t), "k", token); held || err != nil {
			t.Errorf("the token of a holder that is gone: %v, %v", held, err)
		}
		f.crash(f.leader()) // the next leader starts the LockDelay again
		anew := time.Now()
		for i, n := range f.nodes {
			if n != nil {
				other = i
			}
		}
		next := f.acquire(other, mortise.Request{Key: "k"})
		if waited := time.Since(anew); waited < 30*time.Second || waited > 45*time.Second {
			t.Errorf("the next was granted %v after the change of leader", waited)
		}
		t.Logf("without a delay it was free after %v, with one of 30 s after %v", ttl, time.Since(crashed))
		unlock(t, next)
		done := f.acquire(other, mortise.Request{Key: "k", LockDelay: 30 * time.Second})
		unlock(t, done)
		began := time.Now()
		unlock(t, f.lock(other, "k"))
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("after an Unlock it was free only after %v", waited)
		}
	})
}

// TestHandlesUnlockedAtOnce unlocks handles of the same hold from many goroutines. The last Unlock
// must release the lock.
func TestHandlesUnlockedAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		for round := range 300 {
			handles := []*mortise.Lock{f.lock(0, "k")}
			ctx := handles[0].Context(t.Context())
			for range round % 3 {
				again, err := f.nodes[0].Lock(ctx, "k")
				if err != nil {
					t.Fatal(err)
				}
				handles = append(handles, again)
			}
			done := make(chan struct{})
			for _, l := range handles {
				for range 3 {
					go func() {
						if err := l.Unlock(t.Context()); err != nil {
							t.Error(err)
						}
						if err := l.Err(); !errors.Is(err, mortise.ErrUnlocked) {
							t.Errorf("round %d: after Unlock the handle says %v", round, err)
						}
						done <- struct{}{}
					}()
				}
			}
			for range 3 * len(handles) {
				<-done
			}
			free, err := f.nodes[0].TryLock(t.Context(), "k")
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			unlock(t, free)
		}
		f.nothingLeft()
	})
}

// TestWorkersUnderOneLockWaitForEachOther checks that goroutines under one lock that want the same
// key are not reported as a deadlock.
func TestWorkersUnderOneLockWaitForEachOther(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		node := f.nodes[f.follower()]
		batch, err := node.Lock(brief(t), "batch")
		if err != nil {
			t.Fatal(err)
		}
		ctx := batch.Context(t.Context())
		done := make(chan struct{})
		for range 20 {
			go func() {
				defer func() { done <- struct{}{} }()
				if err := node.Do(ctx, "row", func(ctx context.Context, _ mortise.Token) error {
					return node.Do(ctx, "cell", func(context.Context,
						mortise.Token) error {
						time.Sleep(time.Millisecond)
						return nil
					})
				}); err != nil {
					t.Error(err)
				}
			}()
		}
		for range 20 {
			<-done
		}
		unlock(t, batch)
		f.nothingLeft()
	})
}
