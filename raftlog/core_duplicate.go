package raftlog

import "go.etcd.io/raft/v3/raftpb"

// This file shortens elections on networks that lose packets. When a packet is lost, TCP delays all
// later data until the packet is sent again, after 200 ms or more. So small messages on which other
// replicas wait are also sent on a second connection. Raft tolerates duplicates.
//
// Messages are duplicated for a while after a change of role, and after a gap in a peer's
// heartbeats, which indicates loss.

const (
	// unsettledTicks is the time for which messages are duplicated after a change of role or a gap.
	unsettledTicks = 40

	// outageTicks is the time of silence after which a peer gets no more duplicates. Within that
	// time TCP has sent a lost packet again at least six times.
	outageTicks = 80

	// gapHeartbeats is the number of consecutive missing heartbeats that count as a gap.
	gapHeartbeats = 2

	// maxDuplicateBytes bounds the entries of a message that is duplicated.
	maxDuplicateBytes = 1 << 10

	// maxDuplicatesPerTick bounds the cost of duplicates for a busy leader.
	maxDuplicatesPerTick = 16
)

type duplicates struct {
	until uint64 // tick until which messages are duplicated
	count int    // messages duplicated since the last tick
}

func (c *Core) duplicate(m *raftpb.Message) {
	d := &c.duplicates
	if d.count < maxDuplicatesPerTick && duplicable(m) && (c.ticks < d.until || c.uneven(m.GetTo())) {
		d.count++
		c.outputs.next.Duplicates = append(c.outputs.next.Duplicates, m)
	}
}

// duplicable reports whether a message is small and has a type that other replicas wait for.
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

// uneven reports whether the link between a leader and a follower had a gap recently. It reports
// false for a link between two followers, because they exchange no heartbeats. It also reports
// false if the link has been silent for outageTicks. Otherwise a leader whose large entries reach
// no follower would stay the leader, because its duplicated heartbeats arrive.
func (c *Core) uneven(peer uint64) bool {
	if !c.role.Leading && peer != c.role.Leader {
		return false
	}
	h, ok := c.hearings.of[peer]
	silence := c.ticks - h.linked
	return ok && silence < outageTicks && (silence >= c.gapTicks() || c.ticks < h.uneven)
}

func (c *Core) gapTicks() uint64 { return uint64(gapHeartbeats * c.cfg.HeartbeatTicks) }
