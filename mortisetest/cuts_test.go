package mortisetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
)

func TestIsolateAndHeal(t *testing.T) {
	both(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		old := cluster.Leader()
		mine := lock(t, cluster.Node(old), "k")
		granted := later(t, cluster.Node((old+1)%3), "k")
		cluster.Await("k", 1, 1)
		cluster.Isolate(old)
		if now := cluster.Leader(); now == old {
			t.Error("a node that is cut off is taken for the leader")
		}
		theirs := <-granted
		wantGone(t, mine)
		cluster.Heal()
		cluster.Ready()
		unlock(t, theirs)
		unlock(t, lock(t, cluster.Node(old), "k"))
	})
}

// wantGone is like wantLost, but does not call Unlock, which would fail without a leader.
func wantGone(t *testing.T, l *mortise.Lock) {
	t.Helper()
	if err := l.Err(); !errors.Is(err, mortise.ErrLost) {
		t.Errorf("another one has the lock, and its holder says %v", err)
	}
}

// Two of five nodes, one of them the leader, are cut off. Only the other three may grant locks.
func TestSides(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 5,
			mortisetest.Options{Configure: func(_ int, c *mortise.Config) { c.Voters = 5 }})
		old := cluster.Leader()
		with := (old + 1) % 5
		cluster.Isolate(old, with)
		others := (old + 2) % 5
		unlock(t, lock(t, cluster.Node(others), "k"))
		if l, err := tryFor(t, cluster.Node(with), "k", time.Minute); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a minority was granted a lock: %v, %v", l, err)
		}
		seen := 0
		for _, v := range cluster.Node(with).Status().Voters {
			if v.Seen {
				seen++
			}
		}
		if seen != 2 {
			t.Errorf("it sees %d voters, want itself and the one on its side", seen)
		}
		cluster.Heal()
		cluster.Ready()
		unlock(t, lock(t, cluster.Node(with), "k"))
	})
}

// A cut between the leader and a follower must cause no election, because the third node reaches
// both.
func TestCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		leader, a, b := cast(cluster)
		cluster.Cut(a, b)
		for _, i := range []int{a, b} {
			unlock(t, lock(t, cluster.Node(i), "k"))
		}
		cluster.Heal()
		cluster.Cut(leader, a)
		if _, err := tryFor(t, cluster.Node(a), "k", 10*time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("through the cut: %v", err)
		}
		unlock(t, lock(t, cluster.Node(b), "k"))
		if now := cluster.Leader(); now != leader {
			t.Errorf("the leader was %d and is %d", leader, now)
		}
		cluster.Heal()
		unlock(t, lock(t, cluster.Node(a), "k"))
	})
}

// The request of a node that receives nothing is queued. The request of a node whose messages are
// lost is not.
func TestCutOneWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		leader, deaf, other := cast(cluster)
		for name, waiting := range map[string]int{"deaf": 1, "mute": 0} {
			held := lock(t, cluster.Node(other), "k")
			if name == "deaf" {
				cluster.CutOneWay(leader, deaf)
			} else {
				cluster.CutOneWay(deaf, leader)
			}
			granted := later(t, cluster.Node(deaf), "k")
			time.Sleep(ttl / 4) // fake time
			if queue := cluster.Await("k", 1, waiting); len(queue.Queue) != 1+waiting {
				t.Errorf("%s: %+v", name, queue)
			}
			cluster.Heal()
			unlock(t, held)
			unlock(t, <-granted)
			cluster.Ready()
		}
	})
}

func TestACutOutlivesAPauseAndALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		_, a, b := cast(cluster)
		unreachable := func(when string, i int) {
			t.Helper()
			if _, err := tryFor(t, cluster.Node(i), "k", 5*time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", when, err)
			}
		}
		cluster.Isolate(a)
		cluster.Pause(a)
		cluster.Resume(a)
		unreachable("cut, paused, resumed", a)
		cluster.Pause(a)
		cluster.Heal()
		unreachable("paused, healed", a)
		cluster.Resume(a)
		unlock(t, lock(t, cluster.Node(a), "k"))

		cluster.Isolate(b)
		cluster.Kill(b)
		cluster.Start(b)
		unreachable("cut, started anew", b)
		cluster.Heal()
		unlock(t, lock(t, cluster.Node(b), "k"))

		cluster.Pause(a)
		cluster.Kill(a)
		cluster.Start(a)
		mine := lock(t, cluster.Node(a), "k") // a restarted node is not paused, and its clock runs
		time.Sleep(5 * ttl)                   // fake time
		unlock(t, mine)
	})
}

func cast(cluster *mortisetest.Cluster) (leader, a, b int) {
	leader = cluster.Leader()
	return leader, (leader + 1) % 3, (leader + 2) % 3
}
