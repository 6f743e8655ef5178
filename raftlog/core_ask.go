package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// This file shortens elections where messages are slow or lost. Raft asks for a vote once and then
// waits for an election timeout, also when two simultaneous candidates vote for themselves. The two
// rules below only repeat or drop messages. A network may do the same, so raft's guarantees hold.

const (
	// askTicks is the number of ticks that a candidate waits for votes before it asks again.
	askTicks = 4

	// yieldTicks is the number of ticks for which a voter yields to another candidate: two round
	// trips of 100 ms.
	yieldTicks = 8
)

// asking holds the vote requests of a candidate, and whether it yields to another.
type asking struct {
	questions []*raftpb.Message // vote requests as raft sent them, one for each voter
	again     uint64            // tick at which they are sent again
	yielded   uint64            // term of the election in which it yielded; zero means none
	until     uint64            // tick until which it yields
}

func (c *Core) asks(m *raftpb.Message) {
	a := &c.asking
	if len(a.questions) > 0 {
		first := a.questions[0]
		if first.GetTerm() != m.GetTerm() || first.GetType() != m.GetType() || first.GetTo() == m.GetTo() {
			a.questions = a.questions[:0]
		}
	}
	a.questions, a.again = append(a.questions, m), c.ticks+askTicks
}

// askAgain repeats the vote requests while the campaign lasts. Voters ignore them while they follow
// the previous leader.
func (c *Core) askAgain() {
	a := &c.asking
	if len(a.questions) == 0 || c.ticks < a.again {
		return
	}
	first, s := a.questions[0], c.node.BasicStatus()
	standing := first.GetType() == raftpb.MsgPreVote && s.RaftState == raft.StatePreCandidate &&
		first.GetTerm() == s.GetTerm()+1 ||
		first.GetType() == raftpb.MsgVote && s.RaftState == raft.StateCandidate && first.GetTerm() == s.GetTerm()
	if !standing {
		a.questions = nil
		return
	}
	a.again = c.ticks + askTicks
	for _, m := range a.questions {
		c.send(proto.CloneOf(m))
	}
}

// yields reports whether a message must be ignored because this voter yields to another candidate:
// a simultaneous one with a lower ID and at least as much of the log. It yields once in a term, so
// that a candidate that cannot win does not prevent another one from winning.
func (c *Core) yields(m *raftpb.Message) bool {
	a := &c.asking
	switch m.GetType() {
	case raftpb.MsgPreVote:
		if m.GetFrom() < c.id && m.GetTerm() > a.yielded && c.matches(m) {
			a.yielded, a.until = m.GetTerm(), c.ticks+yieldTicks
		}
	case raftpb.MsgPreVoteResp:
		return !m.GetReject() && m.GetTerm() == a.yielded && c.ticks < a.until
	}
	return false
}

func (c *Core) matches(m *raftpb.Message) bool {
	term, last, err := c.lastEntry()
	return err == nil && (m.GetLogTerm() > term || m.GetLogTerm() == term && m.GetIndex() >= last)
}

func (c *Core) lastEntry() (term, index uint64, err error) {
	if index, err = c.view.LastIndex(); err == nil {
		term, err = c.view.Term(index)
	}
	return term, index, err
}
