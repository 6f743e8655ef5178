package raftlog

import "go.etcd.io/raft/v3/raftpb"

// This file makes elections short on networks that lose packets. TCP holds back everything behind a
// lost packet until that has been sent again, after 200 ms or more. So a small message that others
// wait for is also sent on a second connection, where what is held back here is probably not. Raft
// takes a message twice like a network that repeats it.
//
// Two states call for it. At the beginning of a term nothing is known yet about the network between
// the voters, and a lock waits for several exchanges in a row. Later a gap in the heartbeats of a
// peer shows that the network loses packets. A network without loss carries duplicates only after
// an election.

const (
	// unsettledTicks is how long after a change of role, or after a gap, messages are duplicated.
	unsettledTicks = 40

	// gapHeartbeats is how many heartbeats in a row are missed in a gap.
	gapHeartbeats = 2

	// maxDuplicateBytes bounds the entries of a message that is duplicated.
	maxDuplicateBytes = 1 << 10

	// maxDuplicatesPerTick bounds the cost of duplicates for a leader with many callers.
	maxDuplicatesPerTick = 16
)

// duplicate also sends m on the second connection if that may shorten the wait for it.
func (c *Core) duplicate(m *raftpb.Message) {
	if c.duplicated < maxDuplicatesPerTick && duplicable(m) && (c.ticks < c.unsettled || c.uneven(m.GetTo())) {
		c.duplicated++
		c.out.Duplicates = append(c.out.Duplicates, m)
	}
}

// duplicable reports whether a message is small, and of a kind that others wait for.
func duplicable(m *raftpb.Message) bool {
	switch m.GetType() {
	case raftpb.MsgPreVote, raftpb.MsgPreVoteResp, raftpb.MsgVote, raftpb.MsgVoteResp,
		raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgApp, raftpb.MsgAppResp:
	default:
		return false
	}
	size := 0
	for _, e := range m.GetEntries() {
		size += len(e.GetData()) + entryOverheadBytes
	}
	return size <= maxDuplicateBytes
}

// uneven reports whether the heartbeats that a leader and a follower exchange have had a gap
// lately. Two followers exchange none, and a silence of unsettledTicks is no loss of packets.
func (c *Core) uneven(peer uint64) bool {
	if !c.role.Leading && peer != c.role.Leader {
		return false
	}
	h, ok := c.heard[peer]
	silence := c.ticks - h.tick
	return ok && silence < unsettledTicks && (silence >= c.gapTicks() || c.ticks < h.uneven)
}

func (c *Core) gapTicks() uint64 { return uint64(gapHeartbeats * c.cfg.HeartbeatTicks) }
