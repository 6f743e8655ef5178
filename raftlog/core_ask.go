package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// This file shortens elections on networks that delay or lose messages. A raft candidate sends each
// vote request once and then waits for an election timeout. Here a candidate repeats its vote
// requests (askAgain), and one of two simultaneous candidates yields (yields). Both rules only
// repeat or drop messages, as a network may do, so raft's guarantees still hold.

const (
	// askTicks is the time after which a candidate repeats its vote requests.
	askTicks = 4

	// yieldTicks is the time for which a candidate yields to another candidate. It is enough for
	// two round trips of 100 ms each.
	yieldTicks = 8
)

type asking struct {
	questions []*raftpb.Message // raft's last vote requests, one for each voter
	again     uint64            // tick at which the requests are sent again
	yielded   uint64            // last term in which this replica yielded; zero means none
	until     uint64            // tick until which this replica yields

	asker *raftpb.Message // the last MsgPreVote that arrived while this replica followed a leader
	asked uint64          // tick at which it arrived
}

// note remembers the pre-vote request of a replica that has suspected the leader first.
func (a *asking) note(m *raftpb.Message, leader, ticks uint64) {
	if m.GetType() == raftpb.MsgPreVote && leader != 0 {
		a.asker, a.asked = m, ticks
	}
}

// candidate returns that request if its sender still asks for a vote that this voter can give.
func (c *Core) candidate() *raftpb.Message {
	a := &c.asking
	m := a.asker
	a.asker = nil
	if m == nil || m.GetTerm() != c.role.Term+1 || c.ticks-a.asked > askTicks || !c.matches(m) ||
		!slices.Contains(c.members.voters, m.GetFrom()) {
		return nil
	}
	return m
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

// askAgain repeats the vote requests during an election, because a voter ignores a request while it
// still follows the previous leader.
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

// yields reports whether a message must be ignored because this replica yields to another
// candidate. It yields to a candidate in the same election that has a lower ID and a log at least
// as up to date. It yields at most once in a term, so that a candidate that cannot win does not
// block it forever.
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
	term, last, err := c.LastEntry()
	return err == nil && (m.GetLogTerm() > term || m.GetLogTerm() == term && m.GetIndex() >= last)
}

// LastEntry returns the term and the index of the last entry of the log.
func (c *Core) LastEntry() (term, index uint64, err error) {
	if index, err = c.view.LastIndex(); err == nil {
		term, err = c.view.Term(index)
	}
	return term, index, err
}
