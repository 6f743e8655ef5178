package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
)

// PeerLost reports that the stream of a replica has ended. It must be called after the last message
// of that stream was passed to Step. If the lost replica is the leader, this voter forgets the
// leader and starts an election, at most once in a term. Raft alone would wait for an election
// timeout, because voters ignore candidates for that time. If two voters start an election at the
// same time, one of them yields (core_ask.go). A live leader keeps the leadership, because voters
// that receive its messages vote for no other replica.
func (c *Core) PeerLost(id uint64) {
	if id == 0 || c.role.Leader != id || c.role.Leading || c.lostTerm == c.role.Term {
		return
	}
	if !slices.Contains(c.members.voters, c.id) {
		return
	}
	c.lostTerm = c.role.Term
	// An error means that there is nothing to forget.
	_ = c.node.ForgetLeader()
	c.observe()
	if c.role.Term == c.lostTerm && c.role.Leader == 0 && c.node.BasicStatus().RaftState == raft.StateFollower {
		c.Campaign()
	}
}

// suspect makes a voter forget a leader that has been silent for too long (detector.go). The voter
// then supports the candidate that has asked for its vote meanwhile, or starts an election. A live
// leader keeps the leadership, as in PeerLost.
func (c *Core) suspect() {
	if !slices.Contains(c.members.voters, c.id) || !c.detector.givesUp() {
		return
	}
	_ = c.node.ForgetLeader()
	c.observe()
	if c.role.Leader != 0 || c.node.BasicStatus().RaftState != raft.StateFollower {
		return
	}
	if m := c.candidate(); m != nil {
		_ = c.node.Step(m)
		return
	}
	c.Campaign()
}

// Campaign makes a voter start an election now. The only voter of a group becomes the leader within
// the next Turns.
func (c *Core) Campaign() {
	// An error means that this replica cannot campaign.
	_ = c.node.Campaign()
	c.observe()
}

func (c *Core) led(from, term uint64) {
	if from != 0 && from == c.role.Leader && term == c.role.Term {
		c.hearings.leader = c.ticks
	}
}

// forget makes this replica forget a leader that has sent nothing for two election timeouts. That
// is the longest time that a voter waits before it starts an election. Otherwise a replica without
// a vote would report a dead leader forever.
func (c *Core) forget() {
	if c.role.Leader == 0 || c.role.Leading || c.ticks-c.hearings.leader < 2*uint64(c.cfg.ElectionTicks) {
		return
	}
	// An error means that there is nothing to forget.
	_ = c.node.ForgetLeader()
}
