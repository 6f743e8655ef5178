package raftlog

import (
	"reflect"
	"slices"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

func add(id uint64) Change { return Change{Add: &testMembers(id)[0]} }

func (c *cluster) join(id uint64) *replica {
	c.t.Helper()
	store := NewMemoryStore()
	if err := Join(store, testGroup, id); err != nil {
		c.t.Fatal(err)
	}
	return c.add(id, store)
}

func (c *cluster) change(l *replica, ch Change) {
	c.t.Helper()
	if !l.core.Change(l.role.Term, ch) {
		c.t.Fatalf("the leader does not accept %+v: %+v, %+v", ch, l.core.Status(), l.core.Survey())
	}
	l.turn()
	c.settle(3)
}

func (c *cluster) agree(voters, learners []uint64) {
	c.t.Helper()
	first := c.replicas[0].config
	for _, r := range c.replicas {
		if r.core == nil {
			continue
		}
		if !reflect.DeepEqual(r.config, first) || !reflect.DeepEqual(r.core.members.config, first) {
			c.t.Errorf("replica %d has %+v (was told %+v), replica %d %+v", r.id, r.core.members.config, r.config,
				c.replicas[0].id, first)
		}
	}
	if !slices.Equal(first.Voters, voters) || !slices.Equal(first.Learners, learners) || len(first.Outgoing) != 0 {
		c.t.Errorf("the configuration is %+v, want voters %d and learners %d", first, voters, learners)
	}
}

func (c *cluster) others(than *replica) (list []*replica) {
	for _, r := range c.replicas {
		if r != than {
			list = append(list, r)
		}
	}
	return list
}

// The test covers rules 9 and 10 of cluster/voters.
func TestOneBecomesThreeAndOneAgain(t *testing.T) {
	c, l := lone(t)
	for id := uint64(2); id <= 3; id++ {
		c.join(id)
		c.change(l, add(id))
	}
	c.settle(3)
	c.agree([]uint64{1}, []uint64{2, 3})
	c.change(l, Change{Promote: []uint64{2, 3}})
	c.agree([]uint64{1, 2, 3}, nil)
	c.change(l, Change{Demote: []uint64{2}, Remove: []uint64{3}})
	out := c.replicas[2]
	c.isolate(3)
	c.replicas = c.replicas[:2] // the removed replica may not have applied its removal
	c.agree([]uint64{1}, []uint64{2})
	c.change(l, Change{Remove: []uint64{2}})
	c.replicas = c.replicas[:1]
	c.agree([]uint64{1}, nil)
	if out.failed != nil {
		t.Errorf("a removed replica retired by itself: %v", out.failed)
	}
	c.verify()
}

func TestReplacementIsOneJointChange(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	c.join(4)
	c.change(l, add(4))
	out := c.others(l)[0].id
	before := len(c.check.configs)
	c.change(l, Change{Promote: []uint64{4}, Remove: []uint64{out}})
	want := slices.DeleteFunc([]uint64{1, 2, 3, 4}, func(id uint64) bool { return id == out })
	if got := l.config; !slices.Equal(got.Voters, want) || len(got.Members) != 3 {
		t.Errorf("after the replacement of %d: %+v", out, got)
	}
	if n := len(c.check.configs) - before; n != 2 {
		t.Errorf("the replacement took %d configurations, want a joint one and the one after", n)
	}
	// The replaced instance joins again under another ID.
	c.join(5)
	c.change(l, add(5))
	c.change(l, Change{Promote: []uint64{5}, Remove: []uint64{4}})
	c.settle(10)
	c.verify()
}

// Raft would panic on every replica when an invalid change is applied.
func TestNonsenseIsNotProposed(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	c.join(4)
	c.change(l, add(4))
	last := l.core.last
	long := &Member{9, make([]byte, maxContext+1)}
	for _, ch := range []Change{
		{}, {Add: &Member{}}, {Add: &Member{ID: ^uint64(0)}}, {Add: &Member{ID: 4}}, {Add: &Member{ID: 1}}, {Add: long},
		{Add: &Member{ID: 9}, Promote: []uint64{4}}, {Add: &Member{ID: 9}, Demote: []uint64{1}},
		{Add: &Member{ID: 9}, Remove: []uint64{4}},
		{Promote: []uint64{1}}, {Promote: []uint64{9}}, {Promote: []uint64{0}}, {Promote: []uint64{4, 4}},
		{Promote: []uint64{4}, Remove: []uint64{4}},
		{Demote: []uint64{4}}, {Demote: []uint64{9}}, {Demote: []uint64{1, 2, 3}}, {Demote: []uint64{1, 1}},
		{Demote: []uint64{1}, Remove: []uint64{1}},
		{Remove: []uint64{9}}, {Remove: []uint64{0}}, {Remove: []uint64{1, 2, 3}}, {Remove: []uint64{1, 2, 3, 4}},
		{Demote: []uint64{1, 2}, Remove: []uint64{3}},
	} {
		if l.core.Change(l.role.Term, ch) {
			t.Errorf("the leader takes %+v", ch)
		}
		l.turn()
	}
	if l.core.last != last || l.core.Survey().Pending {
		t.Error("something was proposed")
	}
	c.change(l, Change{Demote: []uint64{1, 2, 3}, Promote: []uint64{4}})
	c.settle(30)
	c.agree([]uint64{4}, []uint64{1, 2, 3})
	c.verify()
}

func TestChangeIsTakenOnlyWhenNothingIsPending(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	term, other := l.role.Term, c.others(l)[0]
	if l.core.Change(term-1, add(9)) || l.core.Change(term+1, add(9)) || other.core.Change(term, add(9)) ||
		other.core.Change(other.role.Term, add(9)) {
		t.Error("a change of another term, or on a follower, is taken")
	}
	if l.core.Survey().Pending || !l.core.Change(term, add(9)) {
		t.Fatal("a change is not taken")
	}
	for range 3 { // the change is queued, then in the log, then stored
		if !l.core.Survey().Pending || l.core.Change(term, add(10)) {
			t.Error("a second change is taken")
		}
		if l.save != nil {
			l.sync()
		} else {
			l.turn()
		}
	}
	c.drain()
	if l.core.Survey().Pending || !l.config.has(9) {
		t.Errorf("pending after it is applied: %+v", l.core.Survey())
	}
	if err := l.core.Transfer(other.id); err != nil {
		t.Fatal(err)
	}
	if !l.core.Survey().Pending || l.core.Change(term, add(10)) {
		t.Error("a change is taken while the lead is being handed over")
	}
	c.settle(5)
	// The leader accepts the change, and then a transfer begins before the next Turn.
	l = c.elect()
	last := l.core.last
	if !l.core.Change(l.role.Term, add(10)) {
		t.Fatal("the new leader takes no change")
	}
	c.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow }
	if err := l.core.Transfer(0); err != nil {
		t.Fatal(err)
	}
	l.turn()
	c.settle(15)
	if l.config.has(10) || l.core.Survey().Pending || l.core.last != last {
		t.Errorf("a change was proposed during a transfer, or waits for its end: %+v", l.core.Survey())
	}
	c.verify()
}

func TestNoChangeBeforeLeads(t *testing.T) {
	c := newCluster(t, 3, 1)
	r := c.replicas[0]
	r.core.Campaign()
	r.turn()
	for !r.role.Leading {
		r.sync()
	}
	if s := r.core.Survey(); r.core.Change(r.role.Term, add(9)) || s.Term != 0 || s.Replicas != nil || s.Self != 1 ||
		!s.Config.has(1) {
		t.Errorf("before LeadBegins: %+v", s)
	}
	c.drain()
	if s := r.core.Survey(); s.Term != r.role.Term || len(s.Replicas) != 1 {
		t.Errorf("after LeadBegins: %+v", s)
	}
	c.verify()
}

func TestRefusedChangeDoesNotStayPending(t *testing.T) {
	c, l := lone(t)
	// The test passes another change directly to raft. This change is applied first.
	if err := l.core.node.ProposeConfChange(&raftpb.ConfChangeV2{Changes: single(nil, raftpb.ConfChangeAddLearnerNode,
		8), Context: added(testMembers(8)[0])}); err != nil {
		t.Fatal(err)
	}
	l.turn()
	l.sync() // commits the first change
	if !l.core.Change(l.role.Term, add(9)) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	if l.sync(); !l.config.has(8) || !l.core.Survey().Pending {
		t.Errorf("a change that is not applied is not pending, when another is: %+v", l.core.Survey())
	}
	c.drain()
	if l.config.has(9) || !l.config.has(8) {
		t.Fatalf("raft did not refuse: %+v", l.config)
	}
	if l.core.Survey().Pending {
		t.Error("a change that was refused is pending forever")
	}
	c.change(l, add(9))
	if !l.config.has(9) {
		t.Error("the change is not made afterwards")
	}
	c.verify()
}

// Raft replaces a refused change with an empty entry. The Core must not mistake other entries for
// this one: neither an empty entry that it has proposed itself, nor the entry by which raft leaves
// a joint configuration.
func TestAnEmptyEntryIsNoRefusal(t *testing.T) {
	c, l := lone(t)
	c.join(2)
	c.change(l, add(2))
	proposeEmpty := func() {
		t.Helper()
		if l.core.group.changing.mark = l.core.last; !l.core.proposeEmpty() {
			t.Fatal("no empty entry is proposed")
		}
		l.turn()
	}
	proposeEmpty()
	if !l.core.Change(l.role.Term, Change{Promote: []uint64{2}}) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	if l.sync(); len(l.config.Voters) != 1 || !l.core.Survey().Pending {
		t.Fatalf("the change, which is in the log and not applied, is not pending: %+v", l.core.Survey())
	}
	c.settle(2)
	if len(l.config.Voters) != 2 || l.core.Survey().Pending {
		t.Errorf("after it is applied: %+v", l.core.Survey())
	}
	proposeEmpty()
	l.core.resolved(&raftpb.Entry{Type: raftpb.EntryConfChangeV2.Enum()})
	if len(l.core.group.changing.empty) != 1 {
		t.Error("the entry by which raft leaves a joint configuration was taken for an own one")
	}
	if c.settle(2); len(l.core.group.changing.empty) != 0 {
		t.Errorf("in the end: %+v", l.core.group.changing)
	}
	c.verify()
}

func TestPendingGoesWithTheTerm(t *testing.T) {
	c := newCluster(t, 5, 3)
	l := c.elect()
	c.isolate(l.id)
	if !l.core.Change(l.role.Term, add(9)) {
		t.Fatal("the change is not taken")
	}
	l.turn()
	c.pass(60)
	if s := l.core.Survey(); l.role.Leading || s.Pending || s.Term != 0 {
		t.Fatalf("after the lead is lost: %+v", s)
	}
	c.settle(40)
	for c.leader() != l {
		if err := c.leader().core.Transfer(l.id); err != nil {
			t.Fatal(err)
		}
		c.leader().turn()
		c.settle(5)
	}
	if s := l.core.Survey(); s.Pending || s.Config.has(9) {
		t.Errorf("in the next lead: %+v", s)
	}
	c.change(l, add(10))
	c.agree([]uint64{1, 2, 3}, []uint64{10})
	c.verify()
}
