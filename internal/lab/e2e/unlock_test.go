package e2e

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestUnlockSoon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		mine := f.lock(f.follower(), "k")
		granted := make(chan *mortise.Lock, 1)
		go func() { granted <- f.lock(f.leader(), "k") }()
		synctest.Wait()
		if err := mine.UnlockSoon(); err != nil {
			t.Error(err)
		}
		wantIs(t, mine.Err(), mortise.ErrUnlocked)
		next := <-granted
		if next.Token() <= mine.Token() {
			t.Errorf("token %d after %d", next.Token(), mine.Token())
		}
		if err := mine.UnlockSoon(); err != nil {
			t.Errorf("a second time: %v", err)
		}
		if err := mine.Unlock(t.Context()); err != nil {
			t.Errorf("and Unlock after it: %v", err)
		}
		unlock(t, next)
		f.nothingLeft()
	})
}

func TestUnlockSoonInARow(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		last := mortise.Token(0)
		for range 100 {
			l := f.lock(f.follower(), "k")
			if l.Token() <= last {
				t.Fatalf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			if err := l.UnlockSoon(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		f.nothingLeft()
	})
}

// TestUnlockSoonSaysThatTheLockWasLost checks that a later Leave finds no held lock.
func TestUnlockSoonSaysThatTheLockWasLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		cut := f.follower()
		lost := f.lock(cut, "k")
		f.isolate(cut)
		time.Sleep(10 * time.Second)
		wantIs(t, lost.UnlockSoon(), mortise.ErrLost)
		f.rejoin(cut)
		f.ready()
		mine := f.lock(cut, "another")
		if err := mine.UnlockSoon(); err != nil {
			t.Error(err)
		}
		n := f.nodes[cut]
		f.nodes[cut] = nil
		if err := n.Leave(t.Context()); err != nil {
			t.Errorf("leave after UnlockSoon: %v", err)
		}
		unlock(t, f.lock(f.leader(), "another"))
	})
}
