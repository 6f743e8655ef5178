package raftlog

import "go.etcd.io/raft/v3/raftpb"

// This file shortens elections on networks that lose packets. TCP delays all data after a lost
// packet until that packet is sent again, after 200 ms or more. So a small message for which
// another replica waits is also sent on a second connection, which probably loses other packets.
// Raft tolerates duplicates.
//
// Messages are duplicated for some time after a change of role, when it is not known yet how
// reliable the network is, and after a gap in the heartbeats of a peer, which indicates lost
// packets.

const (
	// unsettledTicks is the number of ticks for which messages are duplicated after a change of
	// role or a gap.
	unsettledTicks = 40

	// outageTicks is the number of ticks without a message on a link after which its peer is sent
	// no duplicates. By that time TCP has sent a lost packet again at least six times.
	outageTicks = 80

	// gapHeartbeats is the number of consecutive missed heartbeats that count as a gap.
	gapHeartbeats = 2

	// maxDuplicateBytes bounds the entries of a message that is duplicated.
	maxDuplicateBytes = 1 << 10

	// maxDuplicatesPerTick bounds the cost of duplicates for a leader with many callers.
	maxDuplicatesPerTick = 16
)

func (c *Core) duplicate(m *raftpb.Message) {
	if c.duplicated < maxDuplicatesPerTick && duplicable(m) && (c.ticks < c.unsettled || c.uneven(m.GetTo())) {
		c.duplicated++
		c.out.Duplicates = append(c.out.Duplicates, m)
	}
}

// duplicable reports whether a message is small and of a kind for which another replica waits.
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

// uneven reports whether the link between a leader and a follower had a gap recently. Two followers
// exchange no heartbeats. A link that stays silent does not count, because it is broken and not
// only slow: duplicates would keep a leader in office whose large entries and other frames reach no
// follower.
func (c *Core) uneven(peer uint64) bool {
	if !c.role.Leading && peer != c.role.Leader {
		return false
	}
	h, ok := c.heard[peer]
	silence := c.ticks - h.linked
	return ok && silence < outageTicks && (silence >= c.gapTicks() || c.ticks < h.uneven)
}

func (c *Core) gapTicks() uint64 { return uint64(gapHeartbeats * c.cfg.HeartbeatTicks) }
