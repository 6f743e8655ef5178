package e2e

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestCloseInEveryState closes nodes at many moments of their start and of the founding. The bubble
// fails the test if a goroutine is left.
func TestCloseInEveryState(t *testing.T) {
	slow.UnderRace(t)
	for _, after := range []time.Duration{
		0, time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
		200 * time.Millisecond, 400 * time.Millisecond,
		600 * time.Millisecond, 800 * time.Millisecond, time.Second, 1500 * time.Millisecond, 3 * time.Second,
		11 * time.Second, 25 * time.Second,
	} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t)
				for i := range 3 {
					f.start(i, f.config(i, 3))
				}
				time.Sleep(after)
				began := time.Now()
				for i := range 3 {
					f.close(i)
				}
				if took := time.Since(began); took > 15*time.Second {
					t.Errorf("closing three nodes took %v", took)
				}
			})
		})
	}
}

func TestCloseAlone(t *testing.T) {
	for _, after := range []time.Duration{0, time.Millisecond, time.Second, 20 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := newFleet(t)
				f.start(0, f.config(0, 3)) // the other founders never start
				time.Sleep(after)
				f.close(0)
			})
		})
	}
}

func TestCloseEndsWaitsAndLocks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		n := f.nodes[0]
		mine := f.lock(0, "mine")
		theirs := f.lock(1, "theirs")
		ctx := mine.Context(t.Context())
		waiting := make(chan error, 1)
		go func() {
			_, err := n.Lock(t.Context(), "theirs")
			waiting <- err
		}()
		time.Sleep(time.Second)
		f.close(0)
		wantIs(t, <-waiting, mortise.ErrClosed)
		<-ctx.Done()
		if mine.Err() == nil {
			t.Error("after Close the lock is still held")
		}
		_, err := n.Lock(t.Context(), "k")
		wantIs(t, err, mortise.ErrClosed)
		wantIs(t, n.Err(), mortise.ErrClosed)
		if err := n.Close(); err != nil {
			t.Errorf("a second Close: %v", err)
		}
		if late := mine.Context(t.Context()); late.Err() == nil {
			t.Error("a context of a lock of a closed node is alive")
		}
		unlock(t, theirs)
	})
}

func TestCloseDoesNotFreeWhatIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holder := f.follower()
		f.lock(holder, "k")
		f.close(holder)
		closed := time.Now()
		next := f.lock(f.leader(), "k")
		if took := time.Since(closed); took < time.Second {
			t.Errorf("a lock whose code may still run was granted to another %v after Close", took)
		}
		unlock(t, next)
	})
}

func TestLeaveHandsOnAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		n := f.nodes[leader]
		mine := f.lock(leader, "k")
		ctx := mine.Context(t.Context())
		var done sync.WaitGroup
		done.Go(func() {
			if err := n.Leave(t.Context()); err != nil {
				t.Errorf("Leave: %v", err)
			}
		})
		<-ctx.Done()
		wantIs(t, context.Cause(ctx), mortise.ErrLeaving)
		if err := mine.Err(); err != nil {
			t.Errorf("Leave took a lock away: %v", err)
		}
		_, err := n.Lock(t.Context(), "other")
		wantIs(t, err, mortise.ErrLeaving)
		time.Sleep(time.Second)
		began := time.Now()
		unlock(t, mine)
		next := f.lock((leader+1)%3, "k")
		took := time.Since(began)
		t.Logf("from the Unlock of a leaving leader to the next grant: %v", took)
		if took > failoverLimit {
			t.Errorf("the next grant took %v", took)
		}
		done.Wait()
		f.nodes[leader] = nil
		unlock(t, next)
	})
}

func TestLeaveWithALockThatIsNotUnlocked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leaver := f.follower()
		f.lock(leaver, "k")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.nodes[leaver].Leave(ctx); err == nil || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Leave with a held lock: %v, want an error that says so", err)
		}
		f.nodes[leaver] = nil
		left := time.Now()
		next := f.lock(f.leader(), "k")
		if took := time.Since(left); took < time.Second/2 {
			t.Errorf("a lock whose code may still run was granted to another %v after Leave", took)
		}
		unlock(t, next)
	})
}

// TestLeaveEndsWaitingCalls checks that Leave ends waiting calls. Otherwise such a call could be
// granted a lock that Leave does not release.
func TestLeaveEndsWaitingCalls(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"leader", "follower"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				leaver := f.leader()
				if who == "follower" {
					leaver = f.follower()
				}
				mine := f.lock(leaver, "k")
				waiting := make(chan error, 1)
				go func() {
					_, err := f.nodes[leaver].Lock(context.Background(), "k")
					waiting <- err
				}()
				time.Sleep(100 * time.Millisecond)
				left := make(chan error, 1)
				go func() { left <- f.nodes[leaver].Leave(context.Background()) }()
				wantIs(t, <-waiting, mortise.ErrLeaving)
				// If Ready succeeded, the service would be sent work that it cannot do.
				wantIs(t, f.nodes[leaver].Ready(t.Context()), mortise.ErrLeaving)
				unlock(t, mine)
				if err := <-left; err != nil {
					t.Errorf("Leave: %v", err)
				}
				f.nodes[leaver] = nil
				began := time.Now()
				unlock(t, f.lock((leaver+1)%3, "k"))
				if took := time.Since(began); took > failoverLimit {
					t.Errorf("a lock that was unlocked before the node left was free only after %v", took)
				}
				f.nothingLeft()
			})
		})
	}
}
