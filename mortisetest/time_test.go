package mortisetest_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
)

func TestLose(t *testing.T) {
	both(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		leader := cluster.Leader()
		for _, i := range []int{leader, cluster.Follower()} {
			next := (i + 1) % 3
			mine, others := lock(t, cluster.Node(i), "k"), lock(t, cluster.Node(next), "other")
			granted := later(t, cluster.Node(next), "k")
			cluster.Await("k", 1, 1)
			cluster.Lose(i)
			if err := mine.Err(); !errors.Is(err, mortise.ErrLost) {
				t.Errorf("right after Lose the holder says %v", err)
			}
			unlock(t, <-granted)
			wantLost(t, mine)
			unlock(t, others) // fails if the lock is lost
			cluster.Ready(i)
			unlock(t, lock(t, cluster.Node(i), "k"))
		}
		if now := cluster.Leader(); now != leader {
			t.Errorf("Lose of the leader cost the lead: %d, now %d", leader, now)
		}
	})
}

// The lock must be lost when Lose returns, without another call and without waiting.
func TestLoseTellsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		holder := cluster.Follower()
		mine := lock(t, cluster.Node(holder), "k")
		lost, began := mine.Done(), time.Now()
		cluster.Lose(holder)
		<-lost
		if took := time.Since(began); took > ttl/100 {
			t.Errorf("the holder was told after %v", took)
		}
	})
}

// A holder that was paused for longer than its lease is told when Resume returns, also if it then
// hears from no other node.
func TestResumeTellsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		holder := cluster.Follower()
		mine := lock(t, cluster.Node(holder), "k")
		lost := mine.Done()
		cluster.Isolate(holder)
		cluster.Pause(holder)
		time.Sleep(10 * ttl)
		began := time.Now()
		cluster.Resume(holder)
		<-lost
		if took := time.Since(began); took > ttl/100 {
			t.Errorf("the holder was told after %v", took)
		}
		wantGone(t, mine)
	})
}

// A lost lock stays taken for its Request.LockDelay, and can be resumed.
func TestLoseWithADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		holder := cluster.Follower()
		mine, err := cluster.Node(holder).Acquire(t.Context(), mortise.Request{Key: "k", LockDelay: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		cluster.Lose(holder)
		wantLost(t, mine)
		cluster.Until("the delay begins", func() bool { return cluster.Await("k", 1, 0).Queue[0].Expired })
		resumed, err := cluster.Node((holder+1)%3).Resume(t.Context(), "k", mine.Token(), mortise.ResumeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cluster.AwaitHolder("k", (holder+1)%3)
		unlock(t, resumed)
	})
}

// A node is restarted while it holds the lock. The session of its earlier incarnation has not
// expired, so the queue still names that incarnation as the holder. That incarnation no longer
// runs, so Await must not wait long for it.
func TestAwaitAHolderThatCannotBeTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3,
			mortisetest.Options{Configure: func(_ int, c *mortise.Config) { c.SessionTTL = time.Minute }})
		holder := cluster.Follower()
		lock(t, cluster.Node(holder), "k")
		cluster.Kill(holder)
		cluster.Start(holder)
		cluster.Ready()
		began := time.Now()
		cluster.Await("k", 1, 0)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestPauseAndResume(t *testing.T) {
	both(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		for name, i := range map[string]int{"a follower": cluster.Follower(), "the leader": cluster.Leader()} {
			next := (i + 1) % 3
			mine := lock(t, cluster.Node(i), "k")
			granted := later(t, cluster.Node(next), "k")
			cluster.Await("k", 1, 1)
			cluster.Pause(i)
			theirs := <-granted
			if err := mine.Err(); err != nil {
				t.Errorf("%s: a holder that is stopped cannot have noticed, but says %v", name, err)
			}
			if theirs.Token() <= mine.Token() {
				t.Errorf("%s: token %d after %d", name, theirs.Token(), mine.Token())
			}
			cluster.Resume(i)
			wantLost(t, mine)
			unlock(t, theirs)
			cluster.Ready()
			unlock(t, lock(t, cluster.Node(i), "k"))
		}
	})
}

func TestAShortPauseCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		holder := cluster.Follower()
		mine := lock(t, cluster.Node(holder), "k")
		cluster.Pause(holder)
		time.Sleep(ttl / 4) // fake time
		cluster.Resume(holder)
		time.Sleep(10 * ttl) // fake time
		unlock(t, mine)      // fails if the lock is lost
	})
}

func TestNothingLeavesAPausedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		i := cluster.Follower()
		cluster.Pause(i)
		granted := later(t, cluster.Node(i), "k")
		time.Sleep(ttl / 2) // fake time
		cluster.Await("k", 0, 0)
		cluster.Resume(i)
		unlock(t, <-granted)
	})
}

func TestLeap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		holder := cluster.Follower()
		mine := lock(t, cluster.Node(holder), "k")
		cluster.Leap(holder, ttl/10)
		if err := mine.Err(); err != nil {
			t.Errorf("a leap within the lease cost the lock: %v", err)
		}
		cluster.Leap(holder, time.Hour)
		wantLost(t, mine)
		cluster.Ready()

		mine = lock(t, cluster.Node(holder), "k")
		cluster.Pause(holder)
		cluster.Leap(holder, time.Hour)
		if err := mine.Err(); err != nil {
			t.Errorf("a node that is paused has seen a leap: %v", err)
		}
		cluster.Resume(holder)
		wantLost(t, mine)
	})
}

// A holder that is cut off must notice the loss of its lock before the lock is granted to the next
// waiter, unless the holder's clock is too slow.
func TestDrift(t *testing.T) {
	slow.UnderRace(t)
	for _, rate := range []float64{1, 0.99, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			cluster := mortisetest.New(t, 3)
			holder := cluster.Follower()
			cluster.Drift(holder, rate)
			time.Sleep(10 * ttl) // fake time
			mine := lock(t, cluster.Node(holder), "k")
			granted := later(t, cluster.Node((holder+1)%3), "k")
			cluster.Await("k", 1, 1)
			cluster.Isolate(holder)
			theirs := <-granted
			if believes := mine.Err() == nil; believes != (rate < 0.98) {
				t.Errorf("at %v: two believe that they hold the lock: %v", rate, believes)
			}
			cluster.Heal()
			cluster.Drift(holder, 1)
			unlock(t, theirs)
			cluster.Ready()
		})
	}
}

func TestTenMinutesInABubble(t *testing.T) {
	slow.UnderRace(t)
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3,
			mortisetest.Options{Configure: func(_ int, c *mortise.Config) { c.SessionTTL = 10 * time.Second }})
		holder := cluster.Follower()
		mine := lock(t, cluster.Node(holder), "k")
		time.Sleep(10 * time.Minute) // fake time
		if err := mine.Err(); err != nil {
			t.Errorf("within the ten minutes: %v", err)
		}
		cluster.Lose(holder)
		wantLost(t, mine)
	})
	t.Logf("ten minutes took %v", time.Since(began))
}

// If the holder had not received its grant when AwaitHolder returns, a loss right afterwards would
// end a waiting request instead of a hold.
func TestAwaitMeansThatTheHolderKnows(t *testing.T) {
	slow.UnderRace(t)
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.New(t, 3)
		holder := cluster.Follower()
		for turn := range 200 {
			mine := later(t, cluster.Node(holder), "k")
			cluster.AwaitHolder("k", holder)
			cluster.Lose(holder)
			l := <-mine
			if err := l.Err(); !errors.Is(err, mortise.ErrLost) {
				t.Fatalf("turn %d: Lose came before the holder knew of its lock: %v", turn, err)
			}
			cluster.Await("k", 0, 0)
		}
	})
}
