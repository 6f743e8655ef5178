package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A replica applies a configuration only after a commit index that covers the configuration is
// durable on this replica. So after a restart it never has an older configuration than it has
// reported.
//
// Without this rule a leader could report the end of a joint configuration, and then restart in the
// joint configuration. The group would then need the vote of a removed replica, whose disk may no
// longer exist.

// apply turns committed entries, which are already durable on this replica, into events. If one of
// them is a configuration whose commit index is not durable, apply requests a Save and the entries
// wait.
func (c *Core) apply() {
	for len(c.applies) > 0 {
		m := c.applies[0]
		if change := lastChange(m); change > c.appends.commit {
			c.appends.demand(change)
			return
		}
		c.applies = slices.Delete(c.applies, 0, 1)
		for _, e := range m.GetEntries() {
			c.applyEntry(e)
		}
		c.held = append(c.held, m.GetResponses()...)
	}
}

func (c *Core) applyEntry(e *raftpb.Entry) {
	own := c.role.Leading && e.GetTerm() == c.role.Term
	c.applied = e.GetIndex()
	c.since += len(e.GetData()) + entryOverheadBytes
	switch {
	case e.GetType() != raftpb.EntryNormal:
		if own {
			c.resolved(e)
		}
		c.configure(e)
	case len(e.GetData()) == 0:
		if own {
			c.resolved(e)
		}
	default:
		if own {
			c.group.inFlight--
		}
		c.out.Events = append(c.out.Events, Event{Kind: Applied, Index: e.GetIndex(), Term: e.GetTerm(),
			Data: e.GetData()})
	}
	if own && !c.group.leads && c.role.Leading {
		c.group.leads, c.group.changing.mark, c.unseen = true, c.last, true
		c.out.Events = append(c.out.Events, Event{Kind: LeadBegins, Term: e.GetTerm()})
	}
}

func lastChange(m *raftpb.Message) (index uint64) {
	for _, e := range m.GetEntries() {
		if e.GetType() != raftpb.EntryNormal {
			index = e.GetIndex()
		}
	}
	return index
}
