package raftlog

import "go.etcd.io/raft/v3/raftpb"

// This file shortens elections on networks that lose packets. TCP delays everything behind a lost
// packet until that is sent again, after 200 ms or more. So a small message that others wait for is
// also sent on a second connection, which probably loses other packets. Raft tolerates duplicates.
//
// Messages are duplicated for a while after a change of role, when the network is not known yet,
// and after a gap in a peer's heartbeats, which shows loss.

const (
	// unsettledTicks is how long after a change of role, or after a gap, messages are duplicated.
	unsettledTicks = 40

	// outageTicks is how long a link may be silent before its peer is sent no duplicates: TCP has then
	// sent a lost packet again six times or more.
	outageTicks = 80

	// gapHeartbeats is how many heartbeats in a row are missed in a gap.
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

// uneven reports whether the link between a leader and a follower had a gap recently. Two followers
// exchange no heartbeats. A link that stays silent is broken, not only late: duplicates would keep
// a leader whose large entries and other frames reach no follower.
func (c *Core) uneven(peer uint64) bool {
	if !c.role.Leading && peer != c.role.Leader {
		return false
	}
	h, ok := c.heard[peer]
	silence := c.ticks - h.linked
	return ok && silence < outageTicks && (silence >= c.gapTicks() || c.ticks < h.uneven)
}

func (c *Core) gapTicks() uint64 { return uint64(gapHeartbeats * c.cfg.HeartbeatTicks) }
