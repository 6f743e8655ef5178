package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
)

// Gone says that the stream of a replica has ended, behind its last message. If that is the leader, raft
// alone would wait for an election timeout: a voter that has heard of its leader lately ignores all
// candidates. So every voter forgets it at once and stands for election; of two that ask at the same
// time one gives way (core_ask.go). A voter does so once in a term, and a leader that lives keeps its
// lead: those that still hear it do not vote, and its next heartbeat is believed again.
func (c *Core) Gone(id uint64) {
	if id == 0 || c.role.Leader != id || c.role.Leading || c.gone == c.role.Term {
		return
	}
	if !slices.Contains(c.voters, c.id) {
		return
	}
	c.gone = c.role.Term
	// An error says that there is nothing to forget.
	_ = c.node.ForgetLeader()
	c.observe()
	if c.role.Term == c.gone && c.role.Leader == 0 && c.node.BasicStatus().RaftState == raft.StateFollower {
		c.Campaign()
	}
}
