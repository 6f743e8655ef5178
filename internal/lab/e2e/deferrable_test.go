package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestAWaiterIsInTheQueueSoon checks requests for a held lock, which need no log entry of their
// own. Such a request must be in the queue within 4 ms.
func TestAWaiterIsInTheQueueSoon(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		ask := func(i int) <-chan *mortise.Lock {
			granted := make(chan *mortise.Lock, 1)
			go func() { granted <- f.lock(i, "k") }()
			synctest.Wait() // the leader has received the request and has no other work
			return granted
		}
		held := f.lock(0, "k")
		began := time.Now()
		second := ask(1)
		for f.peek(2, "k").Waiting == 0 {
			if waited := time.Since(began); waited > 4*time.Millisecond {
				t.Fatalf("it is not in the queue after %v", waited)
			}
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		if _, err := f.nodes[2].Lock(ctx, "k"); !strings.Contains(fmt.Sprint(err), "node-0 held it") {
			t.Errorf("who gave up after 5 ms was not told who holds it: %v", err)
		}
		third := ask(2)
		began = time.Now()
		unlock(t, held)
		unlock(t, <-second)
		unlock(t, <-third)
		if took := time.Since(began); took != 0 {
			t.Errorf("two hand-overs took %v of time in which nothing happened", took)
		}
		f.nothingLeft()
	})
}

// TestHandoverTakesOneEntry checks that a hand-over of a lock takes about one log entry. The
// caller that has released the lock requests it again, and its request shares an entry with the
// next Unlock.
func TestHandoverTakesOneEntry(t *testing.T) {
	slow.UnderRace(t)
	const turns = 200
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		unlock(t, f.lock(0, "k"))
		log := f.nodes[f.leader()].Replica().Log
		before := log.Status().Applied
		var callers sync.WaitGroup
		for i := range 6 {
			callers.Go(func() {
				for range turns {
					unlock(t, f.lock(i%3, "k"))
				}
			})
		}
		callers.Wait()
		entries := log.Status().Applied - before
		t.Logf("%d entries for %d hand-overs", entries, 6*turns)
		if entries > 6*turns*5/4 {
			t.Errorf("%d entries for %d hand-overs", entries, 6*turns)
		}
	})
}

// TestARecallTakesOneEntry checks that a request for a lock that another instance keeps shares an
// entry with the release of that lock, whether the lock is free or in use.
func TestARecallTakesOneEntry(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		time.Sleep(10 * time.Second) // the rules are raised
		log := f.nodes[f.leader()].Replica().Log
		sticky := stickily{key: "k"}
		for _, inUse := range []bool{false, true} {
			unlock(t, f.acquire(0, sticky))
			l := f.acquire(0, sticky)
			if !inUse {
				unlock(t, l)
			}
			synctest.Wait()
			before, began := log.Status().Applied, time.Now()
			next := make(chan *mortise.Lock, 1)
			go func() { next <- f.lock(1, "k") }()
			synctest.Wait()
			if inUse {
				if len(next) > 0 {
					t.Fatal("two instances hold one lock")
				}
				unlock(t, l)
			}
			other := <-next
			if n := log.Status().Applied - before; n != 1 || time.Since(began) != 0 {
				t.Errorf("in use %v: it took %d entries and %v", inUse, n, time.Since(began))
			}
			unlock(t, other)
		}
		f.nothingLeft()
	})
}
