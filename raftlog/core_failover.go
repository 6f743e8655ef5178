package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
)

// Gone says that the stream of a replica has ended, behind its last message. If that is the leader,
// raft alone would wait for an election timeout: a voter that has heard of its leader lately
// ignores all candidates. So every voter forgets it at once and stands for election; of two that
// ask at the same time one gives way (core_ask.go). A voter does so once in a term, and a leader
// that lives keeps its lead: those that still hear it do not vote, and its next heartbeat is
// believed again.
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

// Campaign makes a voter stand for election now. A lone voter leads in the next Turns.
func (c *Core) Campaign() {
	// An error can only say that there is nothing to campaign for.
	_ = c.node.Campaign()
	c.observe()
}

// led files that the leader of the term has spoken.
func (c *Core) led(from, term uint64) {
	if from != 0 && from == c.role.Leader && term == c.role.Term {
		c.ledAt = c.ticks
	}
}

// forget makes this replica forget a leader of whom it has heard nothing for as long as a voter
// waits at most. A voter stands for election by then; one without a vote would name a dead leader
// for ever, and all that hear of it would believe that the group is well.
func (c *Core) forget() {
	if c.role.Leader == 0 || c.role.Leading || c.ticks-c.ledAt < 2*uint64(c.cfg.ElectionTicks) {
		return
	}
	// An error says that there is nothing to forget.
	_ = c.node.ForgetLeader()
}
