package raftlog

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// twiceIn returns what was to travel a second way while time passed.
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

// What an election and the beginning of a lead wait for travels twice. A network that loses nothing
// carries no duplicates after that.
func TestAnElectionTravelsTwice(t *testing.T) {
	c := newCluster(t, 1, 3)
	l := c.elect()
	for _, kind := range []raftpb.MessageType{
		raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgApp, raftpb.MsgAppResp,
	} {
		if !slices.Contains(kinds(c.twice), kind) {
			t.Errorf("%v travels once", kind)
		}
	}
	c.pass(2 * unsettledTicks)
	l.propose()
	l.turn()
	if more := c.twiceIn(unsettledTicks); len(more) > 0 {
		t.Errorf("in a calm network %v travel twice", kinds(more))
	}
}

// A gap in the heartbeats has the two replicas send twice for a while, and no others.
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
			t.Errorf("%v travels once behind a gap", kind)
		}
	}
	if slices.ContainsFunc(more, func(m *raftpb.Message) bool { return !between(m) }) {
		t.Error("messages of a pair without a gap travel twice")
	}
	c.pass(unsettledTicks)
	if more := c.twiceIn(unsettledTicks); len(more) > 0 {
		t.Errorf("long after the gap %v travel twice", kinds(more))
	}
}

// A replica that is gone costs nothing, and a leader with many callers no more than it may.
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
			t.Errorf("replica %d sends %d messages twice in a tick", r.id, sent)
		}
	}
	c.pass(1)
	c.twice = nil
	l.core.Propose(l.role.Term, make([]byte, maxDuplicateBytes))
	l.turn()
	if slices.Contains(kinds(c.twice), raftpb.MsgApp) {
		t.Error("a large entry travels twice")
	}
	c.others(l)[0].crash(false)
	c.pass(2 * unsettledTicks)
	if more := c.twiceIn(unsettledTicks); len(more) > 0 {
		t.Errorf("%v travel twice to a replica that is gone", kinds(more))
	}
}

// The log hands over what travels twice behind what it sends once, and only if there is a second
// way.
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
