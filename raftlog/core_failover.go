package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
)

// staggerTicks is how long each voter waits for the one before it to be elected, when all of them see at once that their leader is gone.
const staggerTicks = 1

// standing is a voter's turn to stand for election after its leader has gone.
type standing struct {
	term uint64 // in which the leader went; 0: none has
	at   uint64 // tick of the turn
	done bool
}

// Gone says that the stream of a replica has ended, behind its last message. If that is the leader, raft alone would wait for an election
// timeout: a voter that has heard of its leader lately ignores all who stand. So every voter forgets it at once, and they stand one after the
// other, in the order of their IDs: all together they would vote for themselves and have to begin anew. Once in a term, and a leader that
// lives keeps its lead: those that still hear it do not vote, and its next heartbeat is believed again.
func (c *Core) Gone(id uint64) {
	if id == 0 || c.role.Leader != id || c.role.Leading || c.stand.term == c.role.Term || bug("dead-leader-awaited") {
		return
	}
	heirs := slices.DeleteFunc(slices.Clone(c.voters), func(v uint64) bool { return v == id })
	rank := slices.Index(heirs, c.id)
	if rank < 0 {
		return // it has no vote
	}
	if bug("all-stand-at-once") {
		rank = 0
	}
	c.stand = standing{term: c.role.Term, at: c.ticks + uint64(rank*staggerTicks)}
	// An error says that there is nothing to forget.
	_ = c.node.ForgetLeader()
	c.observe()
	c.standUp()
}

// standUp campaigns when it is this voter's turn, unless another leads by then or asks for votes in a later term.
func (c *Core) standUp() {
	s := &c.stand
	if s.term == 0 || s.done || c.ticks < s.at {
		return
	}
	s.done = true
	if c.role.Term == s.term && c.role.Leader == 0 && c.node.BasicStatus().RaftState == raft.StateFollower {
		c.Campaign()
	}
}
