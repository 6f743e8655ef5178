package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/shown"
)

// TestTwoLivesOfOneName checks that errors distinguish a restarted process from its predecessor
// with the same name.
func TestTwoLivesOfOneName(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		i := f.follower()
		f.acquire(i, mortise.Request{Key: "k"})
		holds := func() bool {
			for _, id := range f.nodes[i].Status().Sessions {
				if id == f.peek(f.leader(), "k").Queue[0].Session {
					return true
				}
			}
			return false
		}
		if !holds() {
			t.Errorf("the holder's sessions are %q", f.nodes[i].Status().Sessions)
		}
		f.crash(i)
		f.start(i, f.config(i, 3))
		for !f.nodes[i].Status().Attached {
			time.Sleep(100 * time.Millisecond)
		}
		if len(f.peek(f.leader(), "k").Queue) == 0 {
			t.Fatal("the session of the life before has ended already")
		}
		if holds() {
			t.Error("the new life says that it holds the lock of the one before")
		}
		var held *mortise.HeldError
		_, err := f.nodes[i].TryLock(t.Context(), "k")
		if !errors.As(err, &held) || held.Session == "" ||
			!strings.Contains(err.Error(), "in another incarnation (session "+held.Session) {
			t.Errorf("the new life is told %v", err)
		}
		if _, err := f.nodes[f.leader()].TryLock(t.Context(), "k"); err == nil ||
			strings.Contains(err.Error(), "another life") {
			t.Errorf("another instance is told %v", err)
		}
	})
}

func TestStandby(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 1)
		leads := f.acquire(0, mortise.Request{Key: "leader", Labels: shown.Purpose(shown.Election)})
		next := f.later(0, mortise.Request{Key: "leader", Labels: shown.Purpose(shown.Election)})
		other := f.later(0, mortise.Request{Key: "leader"})
		time.Sleep(time.Second)
		if s := f.nodes[0].Status(); s.Waiters != 2 || s.Standby != 1 {
			t.Errorf("%d wait, %d of them as candidates do", s.Waiters, s.Standby)
		}
		unlock(t, leads)
		unlock(t, comes(t, "the next", next))
		unlock(t, comes(t, "the other", other))
		if s := f.nodes[0].Status(); s.Standby != 0 {
			t.Errorf("%d candidates are left", s.Standby)
		}
	})
}
