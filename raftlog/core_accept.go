package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// acceptable reports whether a message from the network may be shown to raft. Raft believes its
// messages: some malformed ones make it panic, which would let one broken peer retire the others.
// Kinds that travel only inside a replica, and those that we never send (forwarded proposals and
// reads), are refused altogether. What is left to raft are well-formed lies; they need a traitor in
// the group.
func acceptable(m *raftpb.Message, self uint64) bool {
	from := m.GetFrom()
	if m == nil || m.GetTo() != self || from == 0 || from == self || raft.IsLocalMsgTarget(from) || m.GetTerm() == 0 {
		return false
	}
	switch m.GetType() {
	case raftpb.MsgProp:
		return false
	case raftpb.MsgApp:
		return consecutive(m)
	case raftpb.MsgSnap:
		_, _, err := open(m.GetSnapshot())
		return err == nil && m.GetSnapshot().GetMetadata().GetTerm() != 0
	case raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp:
		// Raft reads the context of a heartbeat, which comes back in its response, as a number of
		// eight bytes.
		return len(m.GetContext()) == 0 || len(m.GetContext()) == 8
	case raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		raftpb.MsgTimeoutNow:
		return true
	default:
		return false
	}
}

// consecutive reports whether the entries of an append follow its Index without gaps, with terms
// that never fall and never pass the sender's.
func consecutive(m *raftpb.Message) bool {
	index, term := m.GetIndex(), m.GetLogTerm()
	for _, e := range m.GetEntries() {
		if e == nil || e.GetIndex() != index+1 || e.GetTerm() < term || e.GetTerm() > m.GetTerm() {
			return false
		}
		index, term = e.GetIndex(), e.GetTerm()
	}
	return true
}
