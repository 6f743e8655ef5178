package raftlog

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// runWithHungDisk runs for the given ticks, or until stop() is true. The disk of the given replica
// hangs, and all other disks work. It returns the number of ticks.
func (c *cluster) runWithHungDisk(hung *replica, ticks int, stop func() bool) int {
	for n := range ticks {
		if stop() {
			return n
		}
		for _, r := range c.replicas {
			if r.core != nil {
				r.now = r.now.Add(testTick)
				r.core.Tick(r.now)
				r.turn()
			}
		}
		for busy := true; busy; {
			busy = false
			for _, r := range c.replicas {
				if r != hung && r.core != nil && r.save != nil {
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
	return ticks
}

func TestLeaderWithHungDiskHandsOver(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	l.propose()
	l.turn()
	n := c.runWithHungDisk(l, 100, func() bool { return c.leader() != nil && c.leader() != l })
	if n < 9 || n > 14 || l.failed != nil {
		t.Errorf("another replica leads after %d ticks (%v), want about an election timeout of 10", n, l.failed)
	}
	c.runWithHungDisk(l, 50, func() bool { return false })
	if l.failed != nil {
		t.Errorf("a follower with a hung disk retired: %v", l.failed)
	}
	c.verify()
}

func TestLeaderWithHungDiskRetiresWithoutASuccessor(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	l.propose()
	l.turn()
	c.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow }
	n := c.runWithHungDisk(l, 100, func() bool { return l.failed != nil })
	if !errors.Is(l.failed, ErrHung) || n < 59 || n > 62 {
		t.Errorf("after %d ticks: %v, want ErrHung after six election timeouts", n, l.failed)
	}
	if c.elect() == l {
		t.Error("the retired replica leads")
	}
	c.verify()
}

// A leader that the others need for a majority does not retire, because its disk may only be slow.
func TestLeaderWithHungDiskStaysIfItIsNeeded(t *testing.T) {
	for name, down := range map[string]func(*cluster, uint64) func(*raftpb.Message) bool{
		"another is silent": func(c *cluster, id uint64) func(*raftpb.Message) bool {
			c.isolate(id)
			c.pass(15)
			return func(*raftpb.Message) bool { return false }
		},
		"the disk of another hangs": func(_ *cluster, id uint64) func(*raftpb.Message) bool {
			return func(m *raftpb.Message) bool { return m.GetFrom() == id && m.GetType() == raftpb.MsgAppResp }
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, 3)
			l := c.elect()
			lost := down(c, l.id%3+1)
			l.propose()
			l.turn()
			c.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow || lost(m) }
			c.runWithHungDisk(l, 200, func() bool { return false })
			if l.failed != nil {
				t.Fatalf("it retired, and the group is lost: %v", l.failed)
			}
			before := c.check.last
			for n := 0; c.check.last == before; n++ {
				if n == 100 {
					t.Fatal("the group does not go on when the disk does")
				}
				c.pass(5)
				if l := c.leader(); l != nil {
					l.propose()
					l.turn()
				}
			}
			c.verify()
		})
	}
}

// Raft clears RecentActive of all replicas once in each election timeout.
func TestSuccessorIsKnownAtAnyTick(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	behind := c.replicas[l.id%3]
	if best := l.core.successor(); best == 0 || best == l.id {
		t.Errorf("a fresh leader would hand over to %d", best)
	}
	for range 30 {
		l.now = l.now.Add(testTick)
		l.core.Tick(l.now)
		if l.core.successor() == 0 {
			t.Fatal("no successor is known between a heartbeat and its answer")
		}
		l.turn()
		c.drain()
	}
	// The successor is the voter with the longest log, and never a silent voter.
	for range 2 {
		other := c.replicas[behind.id%3]
		if other == l {
			other = c.replicas[other.id%3]
		}
		c.lose = func(m *raftpb.Message) bool { return m.GetTo() == behind.id && m.GetType() == raftpb.MsgApp }
		l.propose()
		l.turn()
		c.drain()
		if got := l.core.successor(); got != other.id {
			t.Errorf("would hand over to %d, want %d, since %d lacks an entry", got, other.id, behind.id)
		}
		c.lose = nil
		c.settle(5)
		behind = other
	}
	c.isolate(behind.id)
	for range 11 {
		l.now = l.now.Add(testTick)
		l.core.Tick(l.now)
		l.turn()
		c.drain()
	}
	if got := l.core.successor(); got == behind.id || got == 0 {
		t.Errorf("would hand over to %d, which is silent", got)
	}
	c.verify()
}

func TestLoneVoterWaitsForItsDisk(t *testing.T) {
	c, r := lone(t)
	r.propose()
	r.turn()
	c.runWithHungDisk(r, 200, func() bool { return false })
	if r.failed != nil || !r.role.Leading {
		t.Fatalf("a lone voter retired: %v", r.failed)
	}
	c.drain()
	if c.check.next[2] != 1 {
		t.Error("it does not go on when the disk does")
	}
	c.verify()
}

func TestSlowDiskIsNotHung(t *testing.T) {
	c := newCluster(t, 3, 3)
	l := c.elect()
	for range 30 {
		l.propose()
		l.turn()
		c.runWithHungDisk(l, 4, func() bool { return false })
		if l.save != nil {
			l.sync()
		}
	}
	if l.failed != nil || !l.role.Leading || l.role.Term != 2 {
		t.Errorf("a leader with a slow disk has lost its lead: %+v, %v", l.role, l.failed)
	}
	c.verify()
}

// TestLostVote shows why a raft ID must be used only once, with one log. A voter that restarts with
// an empty log votes twice in one term. Then two replicas lead in that term, and each commits a
// different entry at the same index. Raft cannot detect that.
func TestLostVote(t *testing.T) {
	c := newCluster(t, 1, 3)
	a, forgetful, b := c.replicas[0], c.replicas[1], c.replicas[2]
	campaign := func(r *replica) {
		r.core.Campaign()
		r.turn()
		c.only(r, forgetful)
		r.propose()
		r.turn()
		c.only(r, forgetful)
	}
	campaign(a)
	if a.leading != 2 || c.check.next[2] != 1 {
		t.Fatalf("replica 1 does not lead in term 2: %+v", a.role)
	}
	// Found refuses to begin in a used store, but it cannot know that the old store is lost.
	forgetful.crash(false)
	forgetful.store = newTestStore(t, 2, []uint64{1, 2, 3})
	forgetful.start()
	campaign(b)
	if b.leading != 2 {
		t.Fatalf("replica 3 does not lead in term 2, too: %+v; if raft prevents this now, IDs may be used again",
			b.role)
	}
	if len(c.check.faults) == 0 {
		t.Errorf("the checker has not noticed two leaders of one term")
	}
}

// This method runs the replicas a and b until they have no work left, and drops all messages to
// other replicas.
func (c *cluster) only(a, b *replica) {
	for busy := true; busy; {
		busy = false
		for _, r := range []*replica{a, b} {
			if r.save != nil {
				r.sync()
				busy = true
			}
		}
		for len(c.wire) > 0 {
			m := take(&c.wire, 0)
			if to := m.GetTo(); to == a.id || to == b.id {
				c.deliver(proto.CloneOf(m))
				busy = true
			}
		}
	}
}

// A leader that got no processor does not blame its store.
func TestAStarvedLeaderDoesNotBlameItsDisk(t *testing.T) {
	for late, want := range map[time.Duration]string{
		0:        "the store or the state machine hangs; handing over the lead",
		testTick: "this machine gave the process no processor for ",
	} {
		c := newCluster(t, 3, 3)
		out := &page{}
		l := c.elect()
		l.core.cfg.Logger = textLogger(out)
		l.propose()
		l.turn()
		c.runWithHungDisk(l, 100, func() bool {
			l.core.Late(late)
			return c.leader() != nil && c.leader() != l
		})
		if got := out.String(); !strings.Contains(got, want) || strings.Count(got, "handing over the lead") != 1 {
			t.Errorf("ticks that are %v late: %s, want %q", late, got, want)
		}
	}
}
