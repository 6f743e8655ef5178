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

// hold keeps an append without entries. If raft is probing the receiver, sendProbes sends the
// append in the same turn.
func (c *Core) hold(m *raftpb.Message) {
	c.supersede(m.GetTo())
	c.commits = append(c.commits, m)
}

func (c *Core) supersede(to uint64) {
	c.commits = slices.DeleteFunc(c.commits, func(m *raftpb.Message) bool { return m.GetTo() == to })
}

// sendProbes sends each append in c.commits whose receiver is being probed by raft.
func (c *Core) sendProbes() {
	var probed []*raftpb.Message
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		if pr.State == tracker.StateReplicate {
			return
		}
		for _, m := range c.commits {
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
	kept := c.commits
	c.commits = c.commits[:0]
	for _, m := range kept {
		if c.role.Leading && m.GetTerm() == c.role.Term {
			c.send(m)
		}
	}
	clear(kept)
}

func (c *Core) send(m *raftpb.Message) {
	if m.GetType() == raftpb.MsgSnap {
		c.out.Snapshots = append(c.out.Snapshots, m)
		return
	}
	if m.GetType() == raftpb.MsgApp {
		c.supersede(m.GetTo())
	}
	c.out.Messages = append(c.out.Messages, m)
	c.duplicate(m)
}
