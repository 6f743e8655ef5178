package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// Raft's leader sends each commit index in a message of its own, which each follower acknowledges.
// That costs as many frames and turns as the entry itself, and no caller waits for it. So an append
// without entries waits here until one with entries replaces it, at most until the next tick. For
// raft such an append is lost or late.
//
// The delay is so short because some of these appends have a second purpose: a follower that lacks
// entries refuses an empty append. Two cases are not delayed. A replica that raft probes gets its
// append at once, because raft sends nothing else to it before its answer. During a change of the
// configuration all replicas get theirs at once, because a removed replica may stop only when the
// others know the change.

// hold keeps an append without entries; sendProbes may send it at once.
func (c *Core) hold(m *raftpb.Message) {
	c.supersede(m.GetTo())
	c.commits = append(c.commits, m)
}

func (c *Core) supersede(to uint64) {
	c.commits = slices.DeleteFunc(c.commits, func(m *raftpb.Message) bool { return m.GetTo() == to })
}

// sendProbes sends the kept appends of replicas that are being probed.
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
