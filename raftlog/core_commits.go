package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
)

// A leader tells its followers of each commit in a message of its own, which each of them
// acknowledges: as many frames and turns again as the entry itself has cost, and nobody waits for
// them. The next append carries the commit index anyway, and so does a heartbeat. So an append
// without entries waits here until one with entries makes it superfluous, at most until the next
// tick.
//
// To raft that is a message that was lost or late, which it bears at any time. No later than a
// tick, since some of these appends are more than news of a commit: when entries were lost on the
// way, it is by the refusal of an empty one that the leader learns of it. A replica that is being
// probed gets its own at once, since raft sends it nothing else before it has answered; and so does
// everybody while the configuration changes, when what the others have heard of it decides who may
// stop.

// hold keeps an append without entries back, for sendProbes to decide.
func (c *Core) hold(m *raftpb.Message) {
	c.supersede(m.GetTo())
	c.commits = append(c.commits, m)
}

// supersede forgets what is kept back for a replica.
func (c *Core) supersede(to uint64) {
	c.commits = slices.DeleteFunc(c.commits, func(m *raftpb.Message) bool { return m.GetTo() == to })
}

// sendProbes sends those that a replica is probed with.
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

// release sends what is kept back.
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
