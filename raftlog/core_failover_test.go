package raftlog

import (
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestAGoneLeaderIsFollowedAtOnce(t *testing.T) {
	slow.UnderRace(t)
	var took []int
	for _, voters := range []int{3, 5} {
		for seed := range uint64(100) {
			c := newCluster(t, seed, voters)
			l := c.elect()
			term := l.role.Term
			l.propose()
			l.turn()
			random := rand.New(rand.NewPCG(seed, 1))
			for range random.IntN(6) { // some messages are delivered
				if len(c.wire) > 0 {
					c.deliver(take(&c.wire, 0))
				}
			}
			l.crash(false)
			// PeerLost is called after the last message of the stream
			c.wire = slices.DeleteFunc(c.wire, func(m *raftpb.Message) bool { return m.GetFrom() == l.id })
			heirs := c.others(l)
			random.Shuffle(len(heirs), func(i, j int) { heirs[i], heirs[j] = heirs[j], heirs[i] })
			together := seed%2 == 0
			for _, r := range heirs {
				r.core.PeerLost(l.id)
				r.turn()
				if !together {
					c.drain()
				}
			}
			c.drain()
			ticks := 0
			for c.leader() == nil {
				if ticks++; ticks > 100 {
					t.Fatalf("seed %d: no replica leads", seed)
				}
				c.pass(1)
			}
			if next := c.leader(); next.role.Term <= term {
				t.Errorf("seed %d: the next leader is of term %d, the last one was of %d", seed, next.role.Term, term)
			}
			took = append(took, ticks)
			c.verify()
		}
	}
	slices.Sort(took)
	t.Logf("ticks until another leads: median %d, worst %d (election timeout 10)", took[len(took)/2], took[len(took)-1])
	if slow := took[len(took)*95/100]; slow > 4 {
		t.Errorf("the 95th percentile is above %d ticks", slow)
	}
}

// A leader whose streams have ended may live: only its network is gone. The others follow it within
// a few ticks, and commit. From then on the old leader must answer no read, although by its own
// clock its election timeout has not ended.
func TestALeaderThatIsCutOffConfirmsNoRead(t *testing.T) {
	c := newCluster(t, 1, 3)
	old := c.elect()
	c.settle(2)
	c.isolate(old.id)
	for _, r := range c.others(old) {
		r.core.PeerLost(old.id)
		r.turn()
	}
	c.drain()
	ticks, next := 0, c.leader()
	for ; next == old || next == nil; next = c.leader() {
		if ticks++; ticks > 100 {
			t.Fatal("no other replica leads")
		}
		c.pass(1)
	}
	before := c.check.last
	next.propose()
	next.turn()
	c.drain()
	if c.check.last == before || !old.role.Leading {
		t.Fatalf("after %d ticks: nothing is committed, or the old leader knows that it is followed: %+v", ticks,
			old.role)
	}
	old.confirm(1)
	old.turn()
	c.drain()
	if len(old.done) != 0 {
		t.Errorf("%d ticks after the cut another leader has committed, and the old one has confirmed a read", ticks)
	}
	t.Logf("%d ticks from the cut to the next leader; an election timeout is 10", ticks)
	c.verify()
}

// A live leader must stay the leader, even if PeerLost is called repeatedly.
func TestAFalseAlarmMovesNothing(t *testing.T) {
	for seed := range uint64(50) {
		c := newCluster(t, seed, 5)
		l := c.elect()
		term := l.role.Term
		random := rand.New(rand.NewPCG(seed, 2))
		for range 20 {
			if r := c.replicas[random.IntN(5)]; r != l {
				r.core.PeerLost(l.id)
				r.turn()
			}
			c.pass(random.IntN(3))
		}
		c.pass(3)
		if l.role.Term != term || !l.role.Leading {
			t.Errorf("seed %d: the leader of term %d is %+v", seed, term, l.role)
		}
		for _, r := range c.others(l) {
			if r.role.Leader != l.id {
				t.Errorf("seed %d: replica %d does not follow any more: %+v", seed, r.id, r.role)
			}
		}
		c.verify()
	}
}
