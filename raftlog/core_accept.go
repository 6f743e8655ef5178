package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// acceptable reports whether a message from the network may be passed to raft. Some malformed
// messages would make raft panic, so one broken peer could retire all other replicas. Types that no
// replica sends are refused: types that raft uses only inside a replica, and forwarded proposals
// and reads. A well-formed message with false contents is accepted.
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
		// Raft decodes the context as a number of eight bytes.
		return len(m.GetContext()) == 0 || len(m.GetContext()) == 8
	case raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		raftpb.MsgTimeoutNow:
		return true
	default:
		return false
	}
}

// consecutive reports whether the entries of an append follow its Index without gaps, and whether
// their terms never decrease and never exceed the term of the message.
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
