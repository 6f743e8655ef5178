package raftlog

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// This file compares the states of the replicas. Raft only makes their logs equal. A defect, a
// damaged memory, or a build with other rules can make a replica apply the same log to another
// state, which nothing else would show until that replica leads.
//
// The leader names an entry that it has applied and the digest of its state after that entry, in
// its heartbeats. The answers to the heartbeats carry the digest of the answering replica after the
// same entry. The leader alone cannot know which state is right, so a majority of the voters
// decides. If it has the digest of the leader, the following heartbeats confirm that digest, and
// each replica with another one retires. If it has another digest, the leader retires. Without a
// majority, for example if two voters differ, no replica retires and the leader logs an error. So
// the replicas that retire are always a minority of the voters.
//
// In a MsgHeartbeat and a MsgHeartbeatResp, raft does not use the fields Index and RejectHint,
// which carry the entry and the digest, and Reject, which confirms.

const (
	// maxMarks is the number of entries whose digests a replica remembers. An entry that it applied
	// earlier is not compared; the leader then names another.
	maxMarks = 1024

	// compareTicks is how long the leader waits for the answers about one entry, in ticks. Then it
	// names another.
	compareTicks = 20
)

// mark is the digest of the state after an entry.
type mark struct{ index, digest uint64 }

// compared is the part of a comparison that every replica has.
type compared struct {
	marks  []mark // of the last applied entries, ascending
	named  mark   // what the leader has named; index 0 means nothing
	answer mark   // the digest of this replica after the named entry; index 0 means not known yet
}

// naming is the leader's part of a comparison.
type naming struct {
	mark
	since     uint64            // the tick at which it was named
	confirmed bool              // a majority of the voters has this digest
	answers   map[uint64]uint64 // the digest of each replica that has answered
	told      bool              // a difference was logged, and since then not all have agreed
	// differed is, for each replica whose last answer was another digest than that of a majority, the
	// entry after which it was. Such a replica retires and answers no more.
	differed map[uint64]uint64
}

// noteDigest remembers the state after an event.
func (c *Core) noteDigest(e *Event) {
	if c.cfg.Digest == nil || e.Kind != Applied && e.Kind != Restored {
		return
	}
	p := &c.compared
	if len(p.marks) == maxMarks {
		p.marks = p.marks[:copy(p.marks, p.marks[maxMarks/2:])]
	}
	p.marks = append(p.marks, mark{e.Index, c.cfg.Digest()})
}

// skip forgets all digests when a snapshot is installed. The next one is noted when the state is
// restored. A heartbeat that arrives before that can name an entry that only the snapshot contains.
func (p *compared) skip() { p.marks, p.answer = p.marks[:0], mark{} }

// digestAt returns the digest of the state after the entry at index, if this replica knows it.
func (c *Core) digestAt(index uint64) (digest uint64, known bool) {
	marks := c.compared.marks
	after, _ := slices.BinarySearchFunc(marks, index, func(m mark, index uint64) int {
		if m.index <= index {
			return -1
		}
		return 1
	})
	if index > c.applied || after == 0 {
		return 0, false
	}
	return marks[after-1].digest, true // the entries since then have not changed the state
}

// nameDigests adds the comparison to the heartbeats, or the answers to heartbeats, among messages.
// All events before the messages must have been delivered.
func (c *Core) nameDigests(messages []*raftpb.Message) {
	if c.cfg.Digest == nil {
		return
	}
	for _, m := range messages {
		switch m.GetType() {
		case raftpb.MsgHeartbeat:
			if c.role.Leading && c.names() {
				n := &c.group.naming
				m.Index, m.RejectHint = new(n.index), new(n.digest)
				if n.confirmed {
					m.Reject = new(true)
				}
			}
		case raftpb.MsgHeartbeatResp:
			if c.answers(); c.compared.answer.index != 0 {
				m.Index, m.RejectHint = new(c.compared.answer.index), new(c.compared.answer.digest)
			}
		}
	}
}

// names reports whether the leader has a digest to name. It begins a new comparison when the last
// one is over.
func (c *Core) names() bool {
	n := &c.group.naming
	if n.index != 0 && c.ticks-n.since < compareTicks && !c.allAgree() {
		return true
	}
	switch {
	case n.index == 0:
	case c.allAgree():
		n.told = false
	case n.told:
	case n.confirmed:
		c.reportOthers()
	default:
		c.undecided()
	}
	digest, known := c.digestAt(c.applied)
	if !known {
		*n = naming{told: n.told, differed: n.differed}
		return false
	}
	*n = naming{mark: mark{c.applied, digest}, since: c.ticks, answers: map[uint64]uint64{c.id: digest},
		told: n.told, differed: n.differed}
	c.judge()
	return true
}

// allAgree reports whether every member has answered with the digest of the leader.
func (c *Core) allAgree() bool {
	n := &c.group.naming
	return !slices.ContainsFunc(c.members.config.Members, func(m Member) bool {
		digest, answered := n.answers[m.ID]
		return !answered || digest != n.digest
	})
}

// compare handles a heartbeat of the leader, or an answer to a heartbeat.
func (c *Core) compare(m *raftpb.Message) {
	if c.cfg.Digest == nil || m.GetIndex() == 0 || m.GetTerm() != c.role.Term {
		return
	}
	switch m.GetType() {
	case raftpb.MsgHeartbeat:
		if m.GetFrom() == c.role.Leader {
			c.hearDigest(mark{m.GetIndex(), m.GetRejectHint()}, m.GetReject())
		}
	case raftpb.MsgHeartbeatResp:
		if n := &c.group.naming; c.role.Leading && m.GetIndex() == n.index {
			n.answers[m.GetFrom()] = m.GetRejectHint()
			c.judge()
		}
	}
}

func (c *Core) hearDigest(named mark, confirmed bool) {
	p := &c.compared
	if p.named != named {
		p.named, p.answer = named, mark{}
	}
	c.answers()
	if confirmed && p.answer.index != 0 && p.answer.digest != named.digest {
		c.diverged(named.index, p.answer.digest, named.digest)
	}
}

// answers finds the answer of this replica, once it has applied the named entry.
func (c *Core) answers() {
	p := &c.compared
	if p.named.index == 0 || p.answer.index != 0 {
		return
	}
	if digest, known := c.digestAt(p.named.index); known {
		p.answer = mark{p.named.index, digest}
	}
}

// judge decides, at the leader, whether a majority of the voters has one digest.
func (c *Core) judge() {
	n := &c.group.naming
	for _, digest := range n.answers {
		if !c.haveDigest(c.members.config.Voters, digest) || !c.haveDigest(c.members.config.Outgoing, digest) {
			continue
		}
		if n.confirmed = digest == n.digest; n.confirmed {
			c.noteDiffering()
		} else {
			c.diverged(n.index, n.digest, digest)
		}
		return
	}
}

// noteDiffering remembers which replicas have another digest than the majority, for the Survey.
func (c *Core) noteDiffering() {
	n := &c.group.naming
	for id, digest := range n.answers {
		_, known := n.differed[id]
		switch {
		case digest == n.digest && known:
			delete(n.differed, id)
		case digest != n.digest && !known:
			if n.differed == nil {
				n.differed = map[uint64]uint64{}
			}
			n.differed[id] = n.index
		default:
			continue
		}
		c.unseen = true
	}
}

// haveDigest reports whether a majority of these voters has answered with the digest. Of no voters,
// a majority has every digest.
func (c *Core) haveDigest(voters []uint64, digest uint64) bool {
	have := 0
	for _, id := range voters {
		if of, answered := c.group.naming.answers[id]; answered && of == digest {
			have++
		}
	}
	return len(voters) == 0 || 2*have > len(voters)
}

// reportOthers logs the replicas that have another digest than the majority.
func (c *Core) reportOthers() {
	for _, m := range c.members.config.Members {
		if digest, answered := c.group.naming.answers[m.ID]; answered && digest != c.group.naming.digest {
			c.group.naming.told = true
			c.cfg.Logger.Error("a replica has another state than the majority and retires: its own log has the next step",
				"replica", fmt.Sprintf("%016x", m.ID), "entry", c.group.naming.index)
		}
	}
}

// undecided logs that all voters have answered and no majority has one digest.
func (c *Core) undecided() {
	n := &c.group.naming
	for _, id := range c.members.config.Voters {
		if _, answered := n.answers[id]; !answered {
			return
		}
	}
	n.told = true
	c.cfg.Logger.Error("the states of the replicas differ, and no majority of them has the same state: "+
		"no replica retires; keep the directories and the logs for a report of the defect, and found the group anew",
		"entry", n.index, "digests", fmt.Sprintf("%x", n.answers))
}

func (c *Core) diverged(index, own, majority uint64) {
	c.outputs.fail(fmt.Errorf("%w: %w: "+
		"after entry %d its digest is %016x, and a majority of the voters has %016x: its memory "+
		"or its disk is damaged, or its build has other rules; the other replicas go on. Check the build and the "+
		"machine, keep the log and the directory for a report, and start it again with an empty directory",
		ErrBroken, ErrDiverged, index, own, majority))
}
