package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// inside checks mutual exclusion. It counts the callers inside each critical section, and remembers
// the last token of each key.
type inside struct {
	errorf func(format string, args ...any)
	mu     sync.Mutex // guards the fields below
	now    map[string]int
	last   map[string]mortise.Token
	turns  int
}

func newInside(t *testing.T) *inside {
	return &inside{errorf: t.Errorf, now: map[string]int{}, last: map[string]mortise.Token{}}
}

func (c *inside) enter(l *mortise.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turns++
	if c.now[l.Key()]++; c.now[l.Key()] > 1 {
		c.errorf("%d are inside %q at once", c.now[l.Key()], l.Key())
	}
	if l.Token() <= c.last[l.Key()] {
		c.errorf("token %d of %q after %d", l.Token(), l.Key(), c.last[l.Key()])
	}
	c.last[l.Key()] = l.Token()
}

func (c *inside) leave(l *mortise.Lock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now[l.Key()]--
}

func TestCheckerOfExclusionCatches(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		check, faults := newInside(t), 0
		check.errorf = func(string, ...any) { faults++ }
		older := f.lock(0, "k")
		unlock(t, older)
		newer := f.lock(0, "k")
		check.enter(newer)
		check.enter(older) // a second caller inside, with a lower token
		if faults != 2 {
			t.Errorf("the checker saw %d faults, want 2", faults)
		}
		unlock(t, newer)
	})
}

func TestManyCallersExclude(t *testing.T) {
	slow.UnderRace(t)
	for _, keys := range []int{1, 100} {
		t.Run(fmt.Sprintf("%d keys", keys), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				check := newInside(t)
				var callers sync.WaitGroup
				for node := range 3 {
					for caller := range 100 {
						callers.Go(func() {
							for turn := range 3 {
								l := f.lock(node, fmt.Sprintf("k%d", (caller+turn)%keys))
								check.enter(l)
								check.leave(l)
								unlock(t, l)
							}
						})
					}
				}
				callers.Wait()
				if check.turns != 900 {
					t.Errorf("%d turns, want 900", check.turns)
				}
				f.nothingLeft()
			})
		})
	}
}

func TestFirstComeFirstServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		first := f.lock(0, "k")
		var order []int
		var mu sync.Mutex
		var callers sync.WaitGroup
		for i := range 30 {
			callers.Go(func() {
				l := f.lock(i%3, "k")
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				unlock(t, l)
			})
			// Request i is committed before request i+1 is made.
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		unlock(t, first)
		callers.Wait()
		for i, got := range order {
			if got != i {
				t.Fatalf("served in the order %v", order)
			}
		}
	})
}

func TestContextEndsAWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		held := f.lock(0, "k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := f.nodes[1].Lock(ctx, "k")
		wantIs(t, err, context.DeadlineExceeded)
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("Lock returned %v after its context ended", waited-time.Second)
		}
		if text := err.Error(); !strings.Contains(text, "node-0 held it") {
			t.Errorf("the error does not say who was in the way: %v", err)
		}
		unlock(t, held)
		f.nothingLeft()
	})
}

func TestContextEndsAWaitWithoutQuorum(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		survivor := f.follower()
		for i := range 3 {
			if i != survivor {
				f.crash(i)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		_, err := f.nodes[survivor].Lock(ctx, "k")
		wantIs(t, err, context.DeadlineExceeded)
		if waited := time.Since(began); waited != 3*time.Second {
			t.Errorf("Lock returned %v after its context ended", waited-3*time.Second)
		}
		t.Logf("the error says: %v", err)
	})
}

func TestTryLockWithoutQuorumIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		survivor := f.follower()
		for i := range 3 {
			if i != survivor {
				f.crash(i)
			}
		}
		began := time.Now()
		_, err := f.nodes[survivor].TryLock(t.Context(), "k")
		wantIs(t, err, mortise.ErrNotReady)
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("TryLock took %v to say so", waited)
		}
	})
}

// TestCancelStorm runs 200 callers that cancel at random moments, while the leader changes.
// Afterwards no node may keep data of their calls.
func TestCancelStorm(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		check := newInside(t)
		var callers sync.WaitGroup
		var granted, cancelled atomic.Int64
		for caller := range 200 {
			callers.Go(func() {
				for turn := range 5 {
					patience := time.Duration(1+(caller*7919+turn*104729)%400) * time.Millisecond
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					l, err := f.nodes[caller%3].Lock(ctx, fmt.Sprintf("k%d", caller%5))
					if err == nil {
						granted.Add(1)
						if l.Err() == nil {
							check.enter(l)
							time.Sleep(7 * time.Millisecond)
							check.leave(l)
						}
						// The caller no longer has the lock, even if the release was not confirmed
						// in time.
						_ = l.Unlock(ctx)
					} else {
						cancelled.Add(1)
					}
					cancel()
				}
			})
		}
		for range 3 {
			time.Sleep(300 * time.Millisecond)
			if r := f.nodes[f.leader()].Replica(); r != nil {
				_ = r.Log.Transfer(t.Context(), 0)
			}
		}
		callers.Wait()
		t.Logf("%d granted, %d gave up", granted.Load(), cancelled.Load())
		if granted.Load() == 0 || cancelled.Load() == 0 {
			t.Error("the storm must have both grants and cancels to mean anything")
		}
		f.nothingLeft()
	})
}

func TestTryLockSaysWhoHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		l := f.lock(1, "k")
		_, err := f.nodes[2].TryLock(t.Context(), "k")
		wantIs(t, err, mortise.ErrHeld)
		var held *mortise.HeldError
		if !asHeld(err, &held) || held.Holder != "node-1" || held.Token != l.Token() || held.Waiters != 0 {
			t.Errorf("got %+v, want node-1 with token %d", held, l.Token())
		}
		if age := time.Since(held.Since); age < 0 || age > time.Second {
			t.Errorf("held since %v, which is %v ago", held.Since, age)
		}
		unlock(t, l)
		again, err := f.nodes[2].TryLock(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		unlock(t, again)
		f.nothingLeft()
	})
}
