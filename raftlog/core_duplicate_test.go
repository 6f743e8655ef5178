package raftlog

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

func (c *cluster) twiceIn(ticks int) []*raftpb.Message {
	c.twice = nil
	c.pass(ticks)
	return c.twice
}

func kinds(messages []*raftpb.Message) (all []raftpb.MessageType) {
	for _, m := range messages {
		if !slices.Contains(all, m.GetType()) {
			all = append(all, m.GetType())
		}
	}
	return all
}

func TestAnElectionTravelsTwice(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	for _, kind := range []raftpb.MessageType{
		raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgApp, raftpb.MsgAppResp,
	} {
		if !slices.Contains(kinds(c.twice), kind) {
			t.Errorf("%v has no duplicate", kind)
		}
	}
	c.pass(2 * unsettledTicks)
	l.propose()
	l.turn()
	if more := c.twiceIn(unsettledTicks); len(more) > 0 {
		t.Errorf("in a network without loss %v are duplicated", kinds(more))
	}
}

// After a gap on a link, only the two replicas of that link send duplicates, and only for a while.
func TestAGapHasMessagesTravelTwice(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	c.pass(2 * unsettledTicks)
	f := c.others(l)[0]
	between := func(m *raftpb.Message) bool { return m.GetTo() == f.id || m.GetFrom() == f.id }
	c.lose = between
	c.pass(gapHeartbeats + 1)
	c.lose = nil
	more := c.twiceIn(unsettledTicks / 2)
	for _, kind := range []raftpb.MessageType{raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp} {
		if !slices.Contains(kinds(more), kind) {
			t.Errorf("after a gap %v has no duplicate", kind)
		}
	}
	if slices.ContainsFunc(more, func(m *raftpb.Message) bool { return !between(m) }) {
		t.Error("messages of a pair without a gap are duplicated")
	}
	c.pass(unsettledTicks)
	if more := c.twiceIn(unsettledTicks); len(more) > 0 {
		t.Errorf("long after the gap %v are duplicated", kinds(more))
	}
}

func TestDuplicatesAreBounded(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	c.twice = nil
	for range 5 * maxDuplicatesPerTick {
		l.propose()
		l.turn()
		c.drain()
	}
	for _, r := range c.replicas {
		sent := 0
		for _, m := range c.twice {
			if m.GetFrom() == r.id {
				sent++
			}
		}
		if sent > maxDuplicatesPerTick {
			t.Errorf("replica %d duplicates %d messages in a tick", r.id, sent)
		}
	}
	c.pass(1)
	c.twice = nil
	l.core.Propose(l.role.Term, make([]byte, maxDuplicateBytes))
	l.turn()
	if slices.Contains(kinds(c.twice), raftpb.MsgApp) {
		t.Error("a large entry is duplicated")
	}
	c.others(l)[0].crash(false)
	c.pass(2 * unsettledTicks)
	if more := c.twiceIn(unsettledTicks); len(more) > 0 {
		t.Errorf("%v are duplicated to a replica that is gone", kinds(more))
	}
}

func TestTheLogSendsDuplicates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var twice []raftpb.MessageType
		p := startParty(t, 3, func(c *Config) {
			if c.ID == 1 {
				c.SendDuplicates = func(ms []*raftpb.Message) { twice = append(twice, kinds(ms)...) }
			}
		})
		p.logs[1].Campaign()
		time.Sleep(time.Second)
		p.close()
		for _, kind := range []raftpb.MessageType{raftpb.MsgPreVote, raftpb.MsgVote, raftpb.MsgApp} {
			if !slices.Contains(twice, kind) {
				t.Errorf("%v was not handed over: %v", kind, twice)
			}
		}
	})
}

// ahead runs the cluster for the given ticks, and delivers duplicates by StepDuplicate.
func (c *cluster) ahead(ticks int) {
	for range ticks {
		for under := c.twiceIn(1); len(under) > 0; under = c.twice {
			c.twice = nil
			for _, m := range under {
				r := c.replica(m.GetTo())
				r.core.StepDuplicate(m)
				r.turn()
			}
			c.drain()
		}
	}
}

// A leader's links lose all messages while the second connections work. It may stay the leader
// during a short gap, but not longer.
func TestDuplicatesDoNotReplaceALink(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	c.pass(2 * unsettledTicks)
	c.lose = func(m *raftpb.Message) bool { return m.GetTo() == l.id || m.GetFrom() == l.id }
	c.ahead(unsettledTicks)
	if now := c.leader(); now == nil || now.id != l.id {
		t.Fatal("the lead did not survive a gap that duplicates can bridge")
	}
	c.ahead(outageTicks + 6*c.others(l)[0].core.cfg.ElectionTicks)
	if now := c.leader(); now == nil || now.id == l.id {
		t.Fatalf("replica %d leads, although nothing arrives on its links", l.id)
	}
}
