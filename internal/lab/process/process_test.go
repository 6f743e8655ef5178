//go:build unix

package process

import (
	"syscall"
	"testing"
	"time"
)

// The tests allow five times the expected duration, because their machines run other work too.
const (
	// Two election timeouts and the time to reach the new leader.
	failover = 2 * time.Second
	slack    = 5
)

func TestKilledLeaderCostsOneFailover(t *testing.T) {
	f := startFleet(t)
	leader := f.leader()
	survivor := f.instances[(leader+1)%3]
	first := survivor.lock("free")
	first.unlock()
	killed := time.Now()
	f.kill(leader)
	second := survivor.lock("free")
	took := time.Since(killed)
	t.Logf("from the kill of the leader to the next grant: %v", took)
	if took > slack*failover {
		t.Errorf("the next grant took %v, more than %d failovers of %v", took, slack, failover)
	}
	if second.token <= first.token {
		t.Errorf("token %d after %d", second.token, first.token)
	}
}

func TestKilledHolderIsFollowedWithinOneLease(t *testing.T) {
	f := startFleet(t)
	leader := f.leader()
	holder, other := (leader+1)%3, f.instances[(leader+2)%3]
	mine := f.instances[holder].lock("k")
	free := f.instances[holder].leaseEnds()
	killed := time.Now()
	f.kill(holder)
	next := other.lock("k")
	if early := time.Until(free); early > 0 {
		t.Errorf("the lock of a killed holder was free %v before the end of its lease", early)
	}
	took := time.Since(killed)
	t.Logf("from the kill of a holder to the next grant: %v (lease %v)", took, leaseTTL)
	if limit := slack * (leaseTTL + failover); took > limit {
		t.Errorf("the next grant took %v, more than %v", took, limit)
	}
	if next.token <= mine.token {
		t.Errorf("token %d after %d", next.token, mine.token)
	}
}

func TestKilledLeaderThatHolds(t *testing.T) {
	f := startFleet(t)
	leader := f.leader()
	mine := f.instances[leader].lock("k")
	killed := time.Now()
	f.kill(leader)
	next := f.instances[(leader+1)%3].lock("k")
	took := time.Since(killed)
	t.Logf("from the kill of a leader that held to the next grant: %v (lease %v)", took, leaseTTL)
	if limit := slack * (leaseTTL + failover); took > limit {
		t.Errorf("the next grant took %v, more than %v", took, limit)
	}
	if next.token <= mine.token {
		t.Errorf("token %d after %d", next.token, mine.token)
	}
	f.start(leader)
	again := f.instances[leader].lock("other")
	again.unlock()
}

func TestStoppedHolderKnowsWhenItWakes(t *testing.T) {
	f := startFleet(t)
	leader := f.leader()
	holder, other := f.instances[(leader+1)%3], f.instances[(leader+2)%3]
	mine := holder.lock("k")
	holder.signal(syscall.SIGSTOP)
	next := other.lock("k") // granted only after the holder's lease has ended
	_, reply := holder.ask(request{Op: "err", Lock: mine.id})
	holder.signal(syscall.SIGCONT)
	if a := get(t, "err", reply); a.Err == "" {
		t.Fatal("the holder was stopped for longer than its lease, another instance holds the lock, " +
			"and the first Err after it woke is nil")
	}
	if next.token <= mine.token {
		t.Errorf("token %d after %d", next.token, mine.token)
	}
	next.unlock()
	after := holder.lock("k") // after SIGCONT the instance can get locks again
	if after.token <= next.token {
		t.Errorf("token %d after %d", after.token, next.token)
	}
}

func TestAllStoppedAndStartedAnew(t *testing.T) {
	f := startFleet(t)
	var last uint64
	for i := range f.instances {
		h := f.instances[i].lock("k")
		if h.token <= last {
			t.Errorf("token %d after %d", h.token, last)
		}
		last = h.token
		h.unlock()
	}
	for i := range f.instances {
		f.kill(i)
	}
	for i := range f.instances {
		f.start(i)
	}
	if h := f.instances[0].lock("k"); h.token <= last {
		t.Errorf("a new group gave token %d; an earlier one had given %d", h.token, last)
	}
}

// TestDurableGroupOutlivesItsProcesses kills a majority and then all instances, several times, and
// checks that no grant is forgotten.
func TestDurableGroupOutlivesItsProcesses(t *testing.T) {
	f := startFleetIn(t, t.TempDir())
	var last uint64
	for _, victims := range [][]int{{0, 1}, {1, 2}, {0, 1, 2}, {2, 0, 1}} {
		h := f.instances[victims[0]].lock("k")
		if h.token <= last {
			t.Errorf("token %d after %d", h.token, last)
		}
		last = h.token
		free, killed := h.n.leaseEnds(), time.Now()
		for _, i := range victims {
			f.kill(i)
		}
		// The holder returns last, because its start shows that its lock is free.
		for _, i := range victims[1:] {
			f.start(i)
		}
		next := f.instances[victims[1]].lock("k")
		took, early := time.Since(killed), time.Until(free)
		t.Logf("from the kill of %d of 3, the holder among them, to the next grant: %v (lease %v)", len(victims),
			took, leaseTTL)
		if limit := slack * (leaseTTL + failover); took > limit {
			t.Errorf("the next grant took %v, more than %v", took, limit)
		}
		if early > 0 {
			t.Errorf("the lock of a killed holder was free after %v, %v before the end of its lease: the restarted group "+
				"has forgotten it", took, early)
		}
		if next.token <= last {
			t.Errorf("token %d after %d", next.token, last)
		}
		last = next.token
		next.unlock()
		f.start(victims[0])
	}
}
