package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A raft leader sends each new commit index in an append without entries, and each follower
// acknowledges that append. These two messages cost as much as the messages of an entry, although
// no caller waits for them. So the Core holds back an append without entries until an append with
// entries replaces it, but at most until the next tick. A longer delay would be wrong, because a
// follower detects by such an append that it lacks entries.
//
// In two cases the append is sent immediately. The first is a receiver that raft is probing,
// because raft sends it nothing else before it answers. The second is a change of the
// configuration, because a removed replica may stop only when the other replicas have the commit
// index of the removal.

// heldBack are appends that are sent later.
type heldBack struct {
	commits  []*raftpb.Message // without entries, until the next tick
	withheld []*raftpb.Message // for learners, see withholds
}

// hold keeps an append without entries. If raft is probing the receiver, sendProbes sends the
// append in the same turn.
func (h *heldBack) hold(m *raftpb.Message) {
	h.supersede(m.GetTo())
	h.commits = append(h.commits, m)
}

func (h *heldBack) supersede(to uint64) {
	h.commits = slices.DeleteFunc(h.commits, func(m *raftpb.Message) bool { return m.GetTo() == to })
}

// withhold keeps an append for a learner, and drops an earlier append with the same receiver and
// index.
func (h *heldBack) withhold(m *raftpb.Message) {
	h.withheld = slices.DeleteFunc(h.withheld, func(w *raftpb.Message) bool {
		return w.GetTo() == m.GetTo() && w.GetIndex() == m.GetIndex()
	})
	h.withheld = append(h.withheld, m)
}

// sendProbes sends each held append without entries whose receiver is being probed by raft.
func (c *Core) sendProbes() {
	var probed []*raftpb.Message
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if pr.State == tracker.StateReplicate {
			return
		}
		for _, m := range c.heldBack.commits {
			if m.GetTo() == id {
				probed = append(probed, m)
			}
		}
	})
	for _, m := range probed {
		c.send(m)
	}
}

func (c *Core) release() {
	kept := c.heldBack.commits
	c.heldBack.commits = c.heldBack.commits[:0]
	for _, m := range kept {
		if c.role.Leading && m.GetTerm() == c.role.Term {
			c.send(m)
		}
	}
	clear(kept)
}

func (c *Core) send(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgSnap {
		c.outputs.next.Snapshots = append(c.outputs.next.Snapshots, m)
		return
	}
	if m.GetType() == raftpb.MsgApp {
		c.heldBack.supersede(m.GetTo())
	}
	c.outputs.next.Messages = append(c.outputs.next.Messages, m)
	c.duplicate(m)
}
