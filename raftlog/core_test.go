package raftlog

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func lone(t *testing.T, change ...func(*CoreConfig)) (*cluster, *replica) {
	t.Helper()
	c := newCluster(t, 1, 1, change...)
	r := c.replicas[0]
	r.core.Campaign()
	r.turn()
	c.drain()
	if r.leading == 0 {
		t.Fatalf("a lone voter that campaigns does not lead at once: %+v", r.core.Status())
	}
	return c, r
}

func TestLoneVoterLeadsWithoutWaiting(t *testing.T) {
	c, r := lone(t)
	if got := r.core.Status(); got.Term != 2 || !got.Leading || got.Applied != 3 || got.Last != 3 ||
		len(got.Voters) != 1 {
		t.Errorf("status %+v, want a leader of term 2 with its first entry, at index 2, and the one that says "+
			"so applied", got)
	}
	c.verify()
}

func TestConfirmWaitsForOwnFirstEntry(t *testing.T) {
	c := newCluster(t, 1, 1)
	r := c.replicas[0]
	r.core.Campaign()
	r.turn()
	for !r.role.Leading {
		r.sync()
	}
	r.confirm(1)
	r.turn()
	if len(r.done) != 0 || r.leading != 0 {
		t.Fatalf("round confirmed before the first entry of the term is durable and applied")
	}
	r.propose()
	r.turn()
	c.drain()
	if len(r.done) != 1 || r.leading == 0 {
		t.Errorf("round not confirmed afterwards")
	}
	c.verify()
}

func TestConfirmedInOrderAfterApply(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	for round := range uint64(5) {
		l.propose()
		l.confirm(round)
	}
	l.turn()
	if n := heartbeats(c.wire); n != 2 {
		t.Errorf("five rounds of one turn sent %d heartbeats, want one to each of two followers", n)
	}
	c.drain()
	c.settle(2)
	if want := []uint64{0, 1, 2, 3, 4}; len(l.done) != len(want) || l.done[4] != 4 {
		t.Errorf("confirmed %v, want %v", l.done, want)
	}
	c.verify()
}

func heartbeats(ms []*raftpb.Message) (n int) {
	for _, m := range ms {
		if m.GetType() == raftpb.MsgHeartbeat {
			n++
		}
	}
	return n
}

func TestRoundsAreForgottenWithTheLead(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	l.confirm(1)
	l.turn()
	c.wire = nil // lose all messages
	c.isolate(l.id)
	for range 40 {
		l.now = l.now.Add(testTick)
		l.core.Tick(l.now)
		l.turn()
	}
	if l.role.Leading {
		t.Fatal("an isolated leader still leads")
	}
	c.settle(60)
	if len(l.done) != 0 {
		t.Errorf("a round of the lost lead was confirmed")
	}
	c.verify()
}

func (c *cluster) isolate(id uint64) {
	for _, r := range c.replicas {
		c.cut[[2]uint64{id, r.id}], c.cut[[2]uint64{r.id, id}] = true, true
	}
}

func TestCommitAloneIsNotSaved(t *testing.T) {
	c := newCluster(t, 1, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes = 1 << 20 })
	l := c.elect()
	c.settle(5)
	saves := map[uint64]int{}
	for range 10 {
		l.propose()
		l.turn()
		for busy := true; busy; {
			busy = false
			for _, r := range c.replicas {
				if r.save != nil {
					saves[r.id]++
					r.sync()
					busy = true
				}
			}
			for len(c.wire) > 0 {
				c.deliver(take(&c.wire, 0))
				busy = true
			}
		}
	}
	for id, n := range saves {
		if n != 10 {
			t.Errorf("replica %d saved %d times for 10 entries", id, n)
		}
	}
	c.verify()
}

func TestTicksFollowElapsedTime(t *testing.T) {
	c := newCluster(t, 1, 3)
	f := c.replicas[0]
	f.core.Tick(f.now.Add(testTick / 2))
	if got := f.core.NextTick().Sub(f.now); got != testTick {
		t.Errorf("after half a tick the next is due at %v, want %v", got, testTick)
	}
	for range 50 { // before each heartbeat the follower stalls for a minute
		f.now = f.now.Add(6000 * testTick)
		f.core.Tick(f.now)
		f.turn()
		if len(c.wire) > 0 {
			break
		}
		f.core.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: new(uint64(2)), To: &f.id,
			Term: new(uint64(1)), Commit: new(uint64(1))})
		f.turn()
		c.wire = nil
	}
	if f.role.Term != 1 || f.role.Leader != 2 {
		t.Errorf("a stalled follower that hears its leader after each stall campaigned: %+v", f.role)
	}
	for range 2 {
		f.now = f.now.Add(6000 * testTick)
		f.core.Tick(f.now)
	}
	f.core.Tick(f.now.Add(-1000)) // if the clock goes back, no tick is counted
}

func TestNothingIsPromisedBeforeItIsDurable(t *testing.T) {
	c := newCluster(t, 1, 3)
	f := c.replicas[0]
	kinds := func() (out []raftpb.MessageType) {
		for _, m := range c.wire {
			out = append(out, m.GetType())
		}
		c.wire = nil
		return out
	}
	step := func(m *raftpb.Message) {
		m.From, m.To = new(uint64(2)), &f.id
		f.core.Step(m)
		f.turn()
	}
	step(&raftpb.Message{Type: raftpb.MsgVote.Enum(), Term: new(uint64(5)), Index: new(uint64(1)),
		LogTerm: new(uint64(1))})
	if got := kinds(); len(got) != 0 {
		t.Errorf("%v left before the vote was durable", got)
	}
	f.sync()
	if got := kinds(); len(got) != 1 || got[0] != raftpb.MsgVoteResp {
		t.Errorf("%v left when the vote was durable", got)
	}
	step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(uint64(5)), Index: new(uint64(1)),
		LogTerm: new(uint64(1)),
		Commit:  new(uint64(2)), Entries: []*raftpb.Entry{{Index: new(uint64(2)), Term: new(uint64(5)),
			Data: batch{5, 0}.encode()}}})
	// A repeated append needs no Save, but its answer must wait for the Save of the first one.
	step(&raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(uint64(5)), Index: new(uint64(2)),
		LogTerm: new(uint64(5)), Commit: new(uint64(2))})
	step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), Term: new(uint64(5)), Commit: new(uint64(2))})
	if got := kinds(); len(got) != 1 || got[0] != raftpb.MsgHeartbeatResp || f.machine.index != 0 {
		t.Errorf("%v left before the entry was durable, applied up to %d", got, f.machine.index)
	}
	f.sync()
	if got := kinds(); len(got) != 2 || got[0] != raftpb.MsgAppResp || got[1] != raftpb.MsgAppResp ||
		f.machine.index != 2 {
		t.Errorf("%v left when the entry was durable, applied up to %d", got, f.machine.index)
	}
	c.verify()
}

func TestConfirmedWaitsForApply(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	l.propose()
	l.turn()
	c.runWithHungDisk(l, 1, func() bool { return false })
	l.confirm(1)
	l.turn()
	c.runWithHungDisk(l, 2, func() bool { return false })
	st := l.core.Status()
	if st.Commit <= st.Applied {
		t.Fatalf("commit %d, applied %d: nothing to wait for", st.Commit, st.Applied)
	}
	if len(l.done) != 0 {
		t.Error("a round was confirmed before what was committed is applied")
	}
	l.sync()
	if len(l.done) != 1 {
		t.Error("the round is not confirmed afterwards")
	}
	c.verify()
}
