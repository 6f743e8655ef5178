package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

type appendsSeen struct{ full, empty, answers int }

func (s *appendsSeen) note(m *raftpb.Message) bool {
	switch {
	case m.GetType() == raftpb.MsgAppResp:
		s.answers++
	case m.GetType() == raftpb.MsgApp && len(m.GetEntries()) == 0:
		s.empty++
	case m.GetType() == raftpb.MsgApp:
		s.full++
	}
	return false
}

// Each entry must cost one append and one answer for each follower, because the commit index is
// sent in the next append or at the next tick.
func TestACommitTravelsWithTheNextAppend(t *testing.T) {
	const locks = 20
	c := newCluster(t, 1, 3)
	l := c.elect()
	var seen appendsSeen
	c.lose = seen.note
	for range locks {
		l.propose()
		l.turn()
		c.drain()
	}
	if want := (appendsSeen{full: 2 * locks, answers: 2 * locks}); seen != want {
		t.Errorf("%d entries, one after the other, made %+v, want %+v", locks, seen, want)
	}
	for _, r := range c.others(l) {
		if behind := l.machine.index - r.machine.index; behind != 1 {
			t.Errorf("replica %d is %d entries behind, want the last one", r.id, behind)
		}
	}
	c.pass(1)
	if want := (appendsSeen{full: 2 * locks, empty: 2, answers: 2*locks + 2}); seen != want {
		t.Errorf("a tick later %+v, want %+v", seen, want)
	}
	for _, r := range c.others(l) {
		if r.machine.index != l.machine.index {
			t.Errorf("replica %d has applied %d a tick later, and the leader %d", r.id, r.machine.index,
				l.machine.index)
		}
	}
	c.verify()
}

func TestALostAppendIsMissedInAQuietGroup(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	lost := c.others(l)[0]
	c.lose = func(m *raftpb.Message) bool { return m.GetTo() == lost.id && len(m.GetEntries()) > 0 }
	l.propose()
	l.turn()
	c.drain()
	c.lose = nil
	for ticks := 1; lost.machine.index != l.machine.index; ticks++ {
		if c.pass(1); ticks > 4 {
			t.Fatalf("replica %d has applied %d after %d ticks, and the leader %d", lost.id, lost.machine.index,
				ticks, l.machine.index)
		}
	}
	c.verify()
}

// An append without entries is sent immediately to a replica that raft is probing.
func TestAProbeDoesNotWait(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	probed := c.others(l)[0]
	c.pass(3)
	l.core.Unreachable(probed.id)
	l.turn()
	var seen appendsSeen
	c.lose = func(m *raftpb.Message) bool { return m.GetTo() == probed.id && seen.note(m) }
	l.now = l.now.Add(testTick)
	l.core.Tick(l.now) // sends a heartbeat; its answer makes raft send the probe
	l.turn()
	c.drain()
	if seen.empty != 1 {
		t.Errorf("after its heartbeat was answered the replica got %+v within the tick, want a probe", seen)
	}
	c.verify()
}

func TestNothingIsKeptBackForALaterLead(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	l.propose()
	l.turn()
	c.drain()
	if len(l.core.heldBack.commits) != 2 {
		t.Fatalf("%d messages are kept back, want 2", len(l.core.heldBack.commits))
	}
	if err := l.core.Transfer(0); err != nil {
		t.Fatal(err)
	}
	l.turn()
	c.drain()
	if l.role.Leading {
		t.Fatal("the lead was not handed over")
	}
	c.lose = func(m *raftpb.Message) bool {
		if m.GetFrom() == l.id && m.GetType() == raftpb.MsgApp {
			t.Errorf("an append of term %d leaves in term %d", m.GetTerm(), l.role.Term)
		}
		return false
	}
	c.pass(3)
	if len(l.core.heldBack.commits) != 0 {
		t.Errorf("%d messages are kept back by a follower", len(l.core.heldBack.commits))
	}
	c.verify()
}
