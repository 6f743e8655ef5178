package raftlog

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func beyond(m *raftpb.Message, index uint64) bool {
	n := len(m.GetEntries())
	return n > 0 && m.GetEntries()[n-1].GetIndex() > index || m.GetCommit() >= index
}

// votes reports whether the second replica votes in the configuration of the first replica.
func votes(in, who *replica) bool {
	return slices.Contains(in.config.Voters, who.id) || slices.Contains(in.config.Outgoing, who.id)
}

// The old leader removes a vote and crashes, and only the replica that lost its vote has applied
// the change. The other replicas still need that vote.
func TestALeaderThatDiesLeavesNoVoteThatIsNeeded(t *testing.T) {
	for _, demoted := range []bool{false, true} {
		t.Run(fmt.Sprintf("demoted=%v", demoted), func(t *testing.T) {
			c := newCluster(t, 3, 3)
			l := c.elect()
			c.join(4)
			c.change(l, add(4))
			c.settle(3)
			out := c.others(l)[0]
			change := Change{Promote: []uint64{4}, Remove: []uint64{out.id}}
			if demoted {
				change = Change{Promote: []uint64{4}, Demote: []uint64{out.id}}
			}
			if !l.core.Change(l.role.Term, change) {
				t.Fatal("the change is not taken")
			}
			l.turn()
			c.until(func() bool { return len(l.config.Outgoing) > 0 })
			left := l.config.Index + 1 // index of the entry that ends the joint configuration
			c.lose = func(m *raftpb.Message) bool {
				return m.GetFrom() == l.id && m.GetTo() != out.id &&
					beyond(m, left)
			}
			l.propose()
			l.turn()
			c.drain()
			if votes(l, out) || votes(out, out) {
				t.Fatalf("it has a vote: the leader has %+v, it has %+v", l.config, out.config)
			}
			for _, r := range c.others(l) {
				if r != out && len(r.config.Outgoing) == 0 {
					t.Fatalf("replica %d knows what was lost on its way: %+v", r.id, r.config)
				}
			}
			l.crash(true)
			l.failed = errors.New("lost for good")
			c.elect()
			c.verify()
		})
	}
}

// The old leader has lost its own vote. It must not have a batch that the others do not have.
func TestALeaderThatLosesItsVoteLeavesTheOthersAble(t *testing.T) {
	c := newCluster(t, 3, 2)
	l := c.elect()
	c.join(3)
	c.change(l, add(3))
	c.settle(3)
	out := c.others(l)[0]
	if !l.core.Change(l.role.Term, Change{Promote: []uint64{3}, Remove: []uint64{out.id}}) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	c.until(func() bool { return len(l.config.Outgoing) > 0 })
	l.crash(false) // it lacks the entry that ends the joint configuration
	c.wire = nil
	l.start()
	out.core.Campaign()
	out.turn()
	c.until(func() bool { return out.role.Leading })
	for range 10 { // hold back messages to l, so that the learner gets the entries first
		for i := 0; i < len(c.wire); {
			if c.wire[i].GetTo() == l.id {
				i++
				continue
			}
			c.deliver(take(&c.wire, i))
		}
		for _, r := range c.replicas {
			if r.save != nil {
				r.sync()
			}
		}
	}
	c.until(func() bool { return out.leading != 0 })
	if !votes(out, out) || slices.Contains(out.config.Voters, out.id) {
		t.Fatalf("it leads with %+v", out.config)
	}
	left := out.core.last
	c.lose = func(m *raftpb.Message) bool { return m.GetFrom() == out.id && beyond(m, left) }
	out.propose()
	out.turn()
	c.until(func() bool { return !votes(out, out) })
	c.lose = nil
	if next := c.elect(); next == out {
		t.Error("it leads without a vote")
	}
	c.verify()
}

// The old leader was elected when its own removal was in its log and not applied.
func TestALeaderThatFindsItsRemovalLeavesTheOthersAble(t *testing.T) {
	c := newCluster(t, 3, 4)
	l := c.elect()
	out := c.others(l)[0]
	if !l.core.Change(l.role.Term, Change{Remove: []uint64{out.id}}) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	c.until(func() bool {
		return !slices.ContainsFunc(c.others(l), func(r *replica) bool { return r.core.durable < l.core.last })
	})
	l.crash(false)
	l.failed = errors.New("lost for good")
	c.wire = nil
	for _, r := range c.others(l) {
		r.core.PeerLost(l.id)
		r.turn()
	}
	c.wire = nil
	out.core.Campaign()
	out.turn()
	c.until(func() bool { return out.role.Leading })
	if !votes(out, out) {
		t.Fatalf("it knows already that it goes: %+v", out.config)
	}
	left := out.core.last
	c.lose = func(m *raftpb.Message) bool { return m.GetFrom() == out.id && beyond(m, left) }
	out.propose()
	out.turn()
	c.pass(1)
	if votes(out, out) {
		t.Fatalf("it still votes: %+v", out.config)
	}
	c.lose = nil
	if next := c.elect(); next == out {
		t.Error("it leads without a vote")
	}
	c.verify()
}
