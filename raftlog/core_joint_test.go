package raftlog

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

func (c *cluster) joint(l *replica) (out *replica) {
	c.t.Helper()
	c.join(4)
	c.change(l, add(4))
	c.settle(3)
	out = c.others(l)[0]
	if !l.core.Change(l.role.Term, Change{Promote: []uint64{4}, Remove: []uint64{out.id}}) {
		c.t.Fatal("the change is not taken")
	}
	l.turn()
	return out
}

// This method delivers messages and completes saves, one at a time, until holds() is true.
func (c *cluster) until(holds func() bool) {
	c.t.Helper()
	for range 1000 {
		for _, r := range c.replicas {
			if holds() {
				return
			}
			if r.core != nil && r.save != nil {
				r.sync()
			}
		}
		if holds() {
			return
		}
		if len(c.wire) > 0 {
			c.deliver(take(&c.wire, 0))
		}
	}
	c.t.Fatal("the condition never holds")
}

func TestNextLeaderLeavesAJointConfiguration(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	out := c.joint(l)
	c.until(func() bool { return len(l.config.Outgoing) > 0 })
	if s := l.core.Survey(); !s.Pending || !slices.Equal(s.Config.Outgoing, []uint64{1, 2, 3}) ||
		slices.Contains(s.Config.Voters, out.id) || len(s.Replicas) != 4 {
		t.Errorf("in the joint configuration the leader sees %+v", s)
	}
	if l.core.Change(l.role.Term, add(9)) {
		t.Error("a change is taken while joint")
	}
	l.crash(false)
	c.wire = nil
	c.replicas = c.others(l) // the old leader never returns
	next := c.elect()
	c.settle(5)
	if next.config.has(out.id) || len(next.config.Outgoing) > 0 || next.core.Survey().Pending {
		t.Errorf("the next leader has not left it: %+v", next.core.Survey())
	}
	c.change(next, Change{Remove: []uint64{l.id}})
	c.verify()
}

// Raft does not leave a joint configuration during a transfer, so the leader must propose another
// entry after the transfer.
func TestJointConfigurationIsLeftAfterATransferThatFailed(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	c.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow }
	out := c.joint(l)
	to := c.others(l)[1]
	if err := l.core.Transfer(to.id); err != nil {
		t.Fatal(err)
	}
	l.turn()
	c.drain()
	if len(l.config.Outgoing) == 0 || !l.core.Transferring() {
		t.Fatalf("not joint, or no transfer: %+v", l.core.Survey())
	}
	c.settle(15)
	if l.leading == 0 || l.config.has(out.id) || l.core.Survey().Pending {
		t.Errorf("after the transfer has failed: %+v", l.core.Survey())
	}
	c.verify()
}

func TestRemovedLeaderStepsDown(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	c.change(l, Change{Remove: []uint64{l.id}})
	if l.role.Leading || l.config.has(l.id) || l.failed != nil || l.core.Survey().Term != 0 {
		t.Errorf("the removed leader is %+v: %+v", l.role, l.core.Survey())
	}
	next := c.elect()
	term := next.role.Term
	c.settle(100)
	if c.leader() != next || next == l || next.role.Term != term || len(next.config.Voters) != 2 {
		t.Errorf("the removed replica disturbs the remaining ones: %+v", c.leader().core.Status())
	}
	c.verify()
}

// The configurations from the log, a snapshot and the store must be equal.
func TestConfigurationsAreEqual(t *testing.T) {
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes, cfg.KeepEntries = 1<<20, 0 })
	l := c.elect()
	c.join(4)
	c.change(l, add(4))
	behind := c.others(l)[1]
	behind.crash(false)
	c.change(l, Change{Promote: []uint64{4}, Demote: []uint64{behind.id}})
	c.join(5)
	c.change(l, add(5))
	behind.crash(false)
	want := l.config
	if index := l.store.state.Snapshot.GetMetadata().GetIndex(); index < want.Index {
		t.Errorf("the snapshot at %d, which was sent, is older than the configuration %d", index, want.Index)
	}
	for range 20 {
		l.propose()
		l.turn()
		c.drain()
	}
	l.core.snapshots.since = 1 << 30 // makes a snapshot due
	l.propose()
	l.turn()
	c.drain()
	if first, _ := l.core.view.FirstIndex(); first <= want.Index {
		t.Fatalf("the log reaches back to %d", first)
	}
	c.settle(10) // settle also starts the crashed replica
	c.agree(want.Voters, want.Learners)
	if !reflect.DeepEqual(c.replica(5).config, want) || !reflect.DeepEqual(behind.config, want) {
		t.Errorf("want %+v, learner %+v, the one that was down %+v", want, c.replica(5).config, behind.config)
	}
	for _, r := range c.replicas {
		r.crash(false)
		r.start()
	}
	c.settle(30)
	c.agree(want.Voters, want.Learners)
	c.verify()
}

func TestLearnerByTheLog(t *testing.T) {
	c := newCluster(t, 3, 3, func(cfg *CoreConfig) { cfg.SnapshotBytes, cfg.KeepEntries = 1<<20, 1000 })
	l := c.elect()
	f := c.join(4)
	c.change(l, add(4))
	c.settle(3)
	taken := l.taken
	f.crash(false) // after the learner has received its first snapshot
	c.join(5)
	if !l.core.Change(l.role.Term, add(5)) {
		t.Fatal("the change is not taken")
	}
	c.lose = func(m *raftpb.Message) bool { return m.GetTo() == 5 }
	l.turn()
	c.drain()
	f.start()
	c.pass(5)
	if !reflect.DeepEqual(f.config, l.config) || !f.config.has(5) || l.taken != taken {
		t.Errorf("%d snapshots more, the learner has %+v, the leader %+v", l.taken-taken, f.config, l.config)
	}
	c.verify()
}

func TestBadEnvelope(t *testing.T) {
	good := newTestStore(t, 1, []uint64{1, 2, 3}).state.Snapshot
	config, state, err := open(good)
	if err != nil || config.Index != 1 || len(config.Members) != 3 || len(state) != 0 ||
		string(config.Members[2].Context) != "replica 3" {
		t.Fatalf("%+v, %q, %v", config, state, err)
	}
	data := good.GetData()
	bad := map[string][]byte{
		"empty": nil, "short": data[:10], "a state alone": []byte("the state of before there were envelopes"),
		"cut":    data[:len(data)-1],
		"format": append([]byte{2}, data[1:]...), "others": enclose(1, testMembers(1, 2, 4), nil),
		"fewer": enclose(1, testMembers(1, 2), nil),
		"more":  enclose(1, testMembers(1, 2, 3, 4), nil), "twice": enclose(1, testMembers(1, 2, 2, 3), nil),
		"no order":      enclose(1, testMembers(2, 1, 3), nil),
		"of the future": enclose(2, testMembers(1, 2, 3), nil), "of no index": enclose(0, testMembers(1, 2, 3), nil),
		"long": enclose(1, []Member{{1, nil}, {2, make([]byte, maxContext+1)}, {3, nil}}, nil),
	}
	for name, data := range bad {
		snap := proto.CloneOf(good)
		snap.Data = data
		store := newTestStore(t, 1, []uint64{1, 2, 3})
		store.state.Snapshot = snap
		st, _ := store.Load()
		if _, err := NewCore(CoreConfig{State: st, Tick: testTick, ElectionTicks: 10, HeartbeatTicks: 1,
			EntriesInFlight: 1, QueueBytes: 1, SnapshotBytes: 1, Logger: quiet}); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: a replica starts with it: %v", name, err)
		}
		if acceptable(&raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)),
			Term: new(uint64(9)), Snapshot: snap}, 1) {
			t.Errorf("%s: raft is shown it", name)
		}
	}
	if !acceptable(&raftpb.Message{Type: raftpb.MsgSnap.Enum(), From: new(uint64(2)), To: new(uint64(1)),
		Term: new(uint64(9)), Snapshot: good}, 1) {
		t.Error("raft is not shown a good one")
	}
	for _, context := range [][]byte{{}, added(Member{ID: 7}), added(testMembers(7)[0])} {
		if _, err := addedMembers(context); err != nil {
			t.Errorf("%x: %v", context, err)
		}
	}
	for _, context := range [][]byte{{1}, {2}, added(Member{}), added(Member{ID: ^uint64(0)}),
		append(added(Member{ID: 7}), 0), added(Member{7, make([]byte, maxContext+1)})} {
		if who, err := addedMembers(context); err == nil {
			t.Errorf("%x adds %+v", context, who)
		}
	}
}

// During a change of the voters a leader must send entries only after they are durable on its own
// disk. Otherwise a follower that has lost its vote could have more entries than the restarted
// leader, which still needs that vote.
func TestNoReplicaHasMoreThanALeaderThatChangesVoters(t *testing.T) {
	for _, again := range []bool{false, true} { // whether the leader is elected again before the commit
		c, l := lone(t)
		f := c.join(2)
		c.change(l, add(2))
		c.change(l, Change{Promote: []uint64{2}})
		c.settle(3)
		if !l.core.Change(l.role.Term, Change{Demote: []uint64{2}}) {
			t.Fatal("the change is not taken")
		}
		l.turn()
		last := l.core.last
		if again {
			c.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgAppResp && m.GetFrom() == 2 }
			c.pass(1)
			c.isolate(2)
			for c.pass(1); l.role.Leading; {
				c.pass(1)
			}
			clear(c.cut)
			c.lose = nil
			if f.core.last != last || len(l.config.Voters) != 2 {
				t.Fatalf("the follower has %d, the change is at %d: %+v", f.core.last, last, l.config)
			}
			l.core.Campaign()
			for l.turn(); !l.role.Leading; {
				if f.save != nil {
					f.sync()
				}
				if l.save != nil {
					l.sync()
				}
				for len(c.wire) > 0 && !l.role.Leading {
					c.deliver(take(&c.wire, 0))
				}
			}
			last = l.core.last
		}
		l.propose() // proposed after the change, and never durable on the leader
		l.turn()
		for range 20 {
			if f.save != nil {
				f.sync()
			}
			if l.save != nil && (len(l.save.Entries) == 0 || l.save.Entries[0].GetIndex() <= last) {
				l.sync()
			}
			for len(c.wire) > 0 {
				c.deliver(take(&c.wire, 0))
			}
		}
		if f.core.last > l.core.durable {
			t.Errorf("again %v: the follower has entries up to %d, the leader has lost all behind %d", again, f.core.last,
				l.core.durable)
		}
		l.crash(false)
		l.start()
		if c.elect() != l {
			t.Error("the only voter does not lead")
		}
		c.verify()
	}
}
