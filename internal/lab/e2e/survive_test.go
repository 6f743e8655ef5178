package e2e

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// failoverLimit is the longest time that the loss of a leader may cost: an election timeout of at
// most twice 500 ms, a second such timeout after a split vote, and the clients' search for the new
// leader.
const failoverLimit = 3 * time.Second

func TestCrashedLeaderCostsOneFailover(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		before := f.lock(0, "k")
		unlock(t, before)
		leader := f.leader()
		f.crash(leader)
		crashed := time.Now()
		after := f.lock((leader+1)%3, "k")
		took := time.Since(crashed)
		t.Logf("from the crash of the leader to the next grant: %v", took)
		// The crash ends the leader's streams, so no follower waits for an election timeout.
		if limit := 200 * time.Millisecond; took > limit {
			t.Errorf("the next grant took %v, more than %v", took, limit)
		}
		if after.Token() <= before.Token() {
			t.Errorf("token %d after %d", after.Token(), before.Token())
		}
		unlock(t, after)
		f.nothingLeft()
	})
}

// TestASilentLeaderIsFollowedSoon cuts off a leader whose heartbeats have come on time for minutes.
func TestASilentLeaderIsFollowedSoon(t *testing.T) {
	slow.UnderRace(t)
	for _, phase := range []time.Duration{0, 17 * time.Millisecond, 38 * time.Millisecond} { // after a heartbeat
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3)
			time.Sleep(3*time.Minute + phase)
			leader := f.leader()
			f.isolate(leader)
			cut := time.Now()
			for leads := false; !leads; {
				time.Sleep(time.Millisecond)
				leads = f.nodes[(leader+1)%3].Status().Leading || f.nodes[(leader+2)%3].Status().Leading
				if took := time.Since(cut); took > 210*time.Millisecond {
					t.Fatalf("no other node leads %v after the leader was cut off", took)
				}
			}
			t.Logf("another node leads after %v", time.Since(cut))
			unlock(t, f.lock((leader+1)%3, "k"))
			f.rejoin(leader)
			f.ready()
			f.nothingLeft()
		})
	}
}

// TestSurvivorsHearOfTheNewLeader cuts off a leader, so that no stream to it ends. The clients of
// the others learn of the new leader from the voter in their own process. Otherwise each would find
// out by two answers that do not come, which takes 667 ms.
func TestSurvivorsHearOfTheNewLeader(t *testing.T) {
	slow.UnderRace(t)
	for survivor := 1; survivor <= 2; survivor++ {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3)
			time.Sleep(3 * time.Minute)
			leader := f.leader()
			on := (leader + survivor) % 3
			unlock(t, f.lock(on, "before"))
			f.isolate(leader)
			cut := time.Now()
			unlock(t, f.lock(on, "after"))
			took := time.Since(cut)
			t.Logf("the next grant comes after %v", took)
			if took > 300*time.Millisecond {
				t.Errorf("the next grant on survivor %d took %v: its client heard late of the new leader", survivor, took)
			}
			f.rejoin(leader)
			f.ready()
			f.nothingLeft()
		})
	}
}

func TestLocksOfSurvivorsOutliveTheLeader(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		mine := f.lock((leader+1)%3, "k")
		f.crash(leader)
		time.Sleep(time.Minute)
		if err := mine.Err(); err != nil {
			t.Errorf("a survivor's lock was lost with the leader: %v", err)
		}
		unlock(t, mine)
		f.nothingLeft()
	})
}

func TestCrashedHolderIsFollowedWithinOneLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		holder := f.follower()
		f.lock(holder, "k")
		f.crash(holder)
		crashed := time.Now()
		next := f.lock(f.leader(), "k")
		took := time.Since(crashed)
		ttl := f.config(0, 3).SessionTTL
		t.Logf("from the crash of a holder to the next grant: %v (lease %v)", took, ttl)
		if took > ttl+failoverLimit {
			t.Errorf("the next grant took %v, more than a lease and a failover", took)
		}
		if took < ttl*2/3-100*time.Millisecond {
			t.Errorf("the next grant came after %v: the TTL is a lower bound", took)
		}
		unlock(t, next)
		f.nothingLeft()
	})
}

func TestCutOffHolderLosesBeforeOthersAreGranted(t *testing.T) {
	slow.UnderRace(t)
	for _, who := range []string{"follower", "leader"} {
		t.Run(who, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				f := startFleet(t, 3)
				holder := f.leader()
				if who == "follower" {
					holder = f.follower()
				}
				mine := f.lock(holder, "k")
				f.isolate(holder)
				next := f.lock((holder+1)%3, "k")
				if mine.Err() == nil {
					t.Error("two hold the lock: the cut off holder still believes")
				}
				if next.Token() <= mine.Token() {
					t.Errorf("token %d after %d", next.Token(), mine.Token())
				}
				f.rejoin(holder)
				f.ready()
				unlock(t, next)
				again := f.lock(holder, "k") // the former holder continues as a running instance
				unlock(t, again)
				f.nothingLeft()
			})
		})
	}
}

func TestWaitersGoOnWhenTheLeaderCrashes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		leader := f.leader()
		holder, waiter := (leader+1)%3, (leader+2)%3
		mine := f.lock(holder, "k")
		granted := make(chan *mortise.Lock, 1)
		go func() { granted <- f.lock(waiter, "k") }()
		time.Sleep(time.Second)
		f.crash(leader)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		select {
		case <-granted:
			t.Fatal("the waiter was granted a lock that is held")
		default:
		}
		unlock(t, mine)
		unlock(t, <-granted)
		f.nothingLeft()
	})
}

func TestTokensRiseWhenAllStartAnew(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		before := f.lock(0, "k")
		for i := range 3 {
			f.crash(i)
		}
		time.Sleep(time.Second)
		for i := range 3 {
			f.start(i, f.config(i, 3))
		}
		after := f.lock(1, "k")
		if after.Token() <= before.Token() {
			t.Errorf("a new group gave token %d after %d", after.Token(), before.Token())
		}
		unlock(t, after)
	})
}

// TestGraceOfANewGroup checks that a new group grants no lock during its grace, in which a holder
// of the previous group may still work.
func TestGraceOfANewGroup(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		began := time.Now()
		for i := range 3 {
			c := f.config(i, 3)
			c.Grace = 20 * time.Second
			f.start(i, c)
		}
		f.leader()
		time.Sleep(5 * time.Second) // every instance has a session
		_, err := f.nodes[0].TryLock(t.Context(), "k")
		wantIs(t, err, mortise.ErrNotReady)
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.nodes[0].Ready(short); err == nil {
			t.Error("Ready says so during the grace")
		} else {
			t.Logf("Ready says: %v", err)
		}
		l := f.lock(1, "k")
		waited := time.Since(began)
		t.Logf("first grant %v after the start", waited)
		if waited < 20*time.Second || waited > 30*time.Second {
			t.Errorf("the first grant came after %v, want a little more than the grace of 20s", waited)
		}
		unlock(t, l)
	})
}

func TestLaterInstanceUsesTheGroup(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.start(3, f.config(3, 3)) // the Join of node 3 names the first three instances
		f.ready()
		if s := f.nodes[3].Status(); s.Votes || s.Group != f.nodes[0].Status().Group {
			t.Errorf("the fourth instance is not a plain member of the group:\n%v", s)
		}
		mine := f.lock(3, "k")
		_, err := f.nodes[0].TryLock(t.Context(), "k")
		wantIs(t, err, mortise.ErrHeld)
		unlock(t, mine)
		f.nothingLeft()
	})
}

func TestRestartedInstanceVotesUnderAnotherID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		gone := f.follower()
		before := f.nodes[gone].Replica().ID
		f.crash(gone)
		f.start(gone, f.config(gone, 3))
		f.ready()
		s := f.nodes[gone].Status()
		if r := f.nodes[gone].Replica(); !s.Votes || r.ID == before {
			t.Errorf("an instance that has come back without its old state does not vote under another ID:\n%v", s)
		}
		unlock(t, f.lock(gone, "k"))
	})
}

func TestFoundersFoundAndOthersJoin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		for i := range 5 {
			c := f.config(i, 5)
			c.Replicas, c.Founders = 0, []string{"node-1", "node-2", "node-3"}
			f.start(i, c)
		}
		f.ready()
		for i, n := range f.nodes {
			if votes := n.Status().Votes; votes != (i >= 1 && i <= 3) {
				t.Errorf("node %d votes: %v", i, votes)
			}
		}
		unlock(t, f.lock(0, "k"))
		unlock(t, f.lock(4, "k"))
	})
}

func TestMinorityGrantsNothing(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.isolate(0)
		time.Sleep(10 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		if l, err := f.nodes[0].Lock(ctx, "k"); err == nil {
			t.Fatalf("a cut off instance was granted %v", l.Token())
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock without a majority: %v", err)
		} else {
			t.Logf("the error says: %v", err)
		}
		f.rejoin(0)
		f.ready()
		unlock(t, f.lock(0, "k"))
		f.nothingLeft()
	})
}
