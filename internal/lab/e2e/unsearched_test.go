package e2e

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// crowd lets many callers on node 2 wait for each key until the context ends. The returned function
// waits until these calls have failed.
func (f *fleet) crowd(ctx context.Context, size int, keys ...string) (ended func()) {
	var all sync.WaitGroup
	for _, key := range keys {
		for range size {
			all.Go(func() {
				if _, err := f.nodes[2].Lock(ctx, key); err == nil {
					f.t.Errorf("%q was granted to one of the crowd", key)
				}
			})
		}
		for f.peek(0, key).Waiting < size {
			time.Sleep(50 * time.Millisecond)
		}
	}
	return all.Wait
}

// TestDeadlockBehindACrowd lets two callers deadlock behind many callers that wait for the same
// keys, so that no Acquire finds the deadlock. One of the two must get the error within a second.
func TestDeadlockBehindACrowd(t *testing.T) {
	slow.UnderRace(t)
	size := 2_000 // for each key, because 10,000 take five seconds; the search of an Acquire visits 288 entries
	if underRace {
		size = 500
	}
	begun, took := time.Now(), time.Duration(0)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		locks := []*mortise.Lock{f.lock(0, "a"), f.lock(1, "b")}
		ctx, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		ended := f.crowd(ctx, size, "a", "b")
		since, told := time.Now(), make(chan error, 2)
		for i, key := range []string{"b", "a"} {
			go func() {
				_, err := f.nodes[i].Lock(locks[i].Context(ctx), key)
				told <- err
			}()
		}
		err := <-told
		took = time.Since(since)
		var deadlock *mortise.DeadlockError
		if !errors.As(err, &deadlock) || len(deadlock.Circle) != 2 || took > time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		leave()
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("the other caller: %v", err)
		}
		ended()
		unlock(t, locks[0])
		unlock(t, locks[1])
		f.nothingLeft()
	})
	t.Logf("behind %d waiters, the error came after %v; the test took %v of real time", size, took, time.Since(begun))
}

// TestDeadlockBehindNestedJobs lets two callers deadlock behind jobs that wait under nested limits.
// No job may be left to a search of the leader, and one of the two must get the error within a
// second.
func TestDeadlockBehindNestedJobs(t *testing.T) {
	slow.UnderRace(t)
	jobs := 2_000
	if underRace {
		jobs = 500
	}
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Minute)
		defer leave()
		all := mortise.Request{Key: "tenants/busy", Mode: mortise.Permits(5, 5)}
		locks := []*mortise.Lock{f.lock(0, "x"), f.acquire(1, all)}
		var crowd sync.WaitGroup
		for i := range jobs {
			crowd.Go(func() { // two for each order
				err := f.nodes[2].DoNested(ctx, limits(fmt.Sprint(i/2), "busy"), func(context.Context, mortise.Token) error {
					t.Error("a job has begun")
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			})
		}
		for f.peek(0, "tenants/busy").Waiting < jobs/2 {
			time.Sleep(50 * time.Millisecond)
		}
		for _, s := range f.peek(0, "tenants/busy").Queue {
			if s.Unsearched {
				t.Fatalf("a job is unsearched: %+v", s)
			}
		}
		since, told := time.Now(), make(chan error, 2)
		for i, r := range []mortise.Request{{Key: "tenants/busy", Mode: mortise.Permits(1, 5)}, {Key: "x"}} {
			go func() {
				_, err := f.nodes[i].Acquire(locks[i].Context(ctx), r)
				told <- err
			}()
		}
		err := <-told
		took := time.Since(since)
		var deadlock *mortise.DeadlockError
		if !errors.As(err, &deadlock) || len(deadlock.Circle) != 2 || took > time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		t.Logf("behind %d jobs, the error came after %v", jobs, took)
		leave()
		if err := <-told; !errors.Is(err, context.Canceled) {
			t.Errorf("the other caller: %v", err)
		}
		crowd.Wait()
		unlock(t, locks[0])
		unlock(t, locks[1])
		f.nothingLeft()
	})
}

// TestPeekTellsUnsearchedRequests makes more requests behind a crowd than the leader searches at
// once. Peek must show that some are not searched to the end, and later that all are.
func TestPeekTellsUnsearchedRequests(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		held := f.lock(1, "k")
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		// A request under the holder, and below one behind each lock: without them, no circle would be
		// possible, and no search would begin.
		inner, err := f.nodes[1].Lock(held.Context(ctx), "inner")
		if err != nil {
			t.Fatal(err)
		}
		ended := []func(){f.crowd(ctx, 300, "k")}
		var locks, outers []*mortise.Lock
		for i := range 20 {
			key := fmt.Sprintf("own/%d", i)
			locks = append(locks, f.lock(0, key))
			outer := f.lock(2, fmt.Sprintf("outer/%d", i))
			outers = append(outers, outer)
			ended = append(ended, f.crowd(outer.Context(ctx), 1, key))
		}
		var nested sync.WaitGroup
		for _, l := range locks {
			nested.Go(func() {
				if _, err := f.nodes[0].Lock(l.Context(ctx), "k"); !errors.Is(err, context.Canceled) {
					t.Errorf("%v", err)
				}
			})
		}
		synctest.Wait()
		unsearched := func() (n int) {
			for _, s := range f.peek(1, "k").Queue {
				if s.Unsearched && s.Holder != "node-0" {
					t.Errorf("a request without an owner is unsearched: %+v", s)
				} else if s.Unsearched {
					n++
				}
			}
			return n
		}
		for tries := 0; f.peek(1, "k").Waiting < 300+len(locks); tries++ {
			if tries == 100 {
				t.Fatal("the requests do not arrive")
			}
			time.Sleep(time.Millisecond)
		}
		first := unsearched()
		time.Sleep(10 * time.Second)
		if last := unsearched(); first == 0 || last != 0 {
			t.Errorf("%d requests were unsearched, and %d after ten seconds", first, last)
		}
		t.Logf("%d of %d were unsearched", first, len(locks))
		leave()
		nested.Wait()
		for _, each := range ended {
			each()
		}
		for _, l := range append(append(locks, outers...), inner, held) {
			unlock(t, l)
		}
		f.nothingLeft()
	})
}
