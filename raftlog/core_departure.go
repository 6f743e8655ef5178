package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A replica that loses its vote may hear of it before the others do. Once it knows, it does not
// stand for election any more, but those that do not know may still need its vote. If it had more
// of the log than they have it would refuse them, and no leader could be elected, for ever. So it
// never has more than a majority of those that keep their votes. Two rules see to that; careful
// sees to what a leader loses in a crash:
//
//   - No batch is proposed behind a change of the configuration until that is applied. A leader may
//     lose its own vote by it.
//   - Learners are sent only what is committed, until an entry behind the configuration is
//     committed: a majority of the voters knows by that entry who votes.

// changes reports whether the log may have a change of the configuration that is not applied: one
// of this lead, the end of a joint configuration, or one of an earlier leader.
func (c *Core) changes() bool {
	return !c.group.leads || c.pending()
}

// withholds reports whether an append is not for a learner yet.
func (c *Core) withholds(m *raftpb.Message) bool {
	return lastIndex(m) > c.commit && !c.known() && !slices.Contains(c.voters, m.GetTo())
}

// known reports whether a majority of the voters knows the configuration to be committed, durably.
func (c *Core) known() bool { return c.group.leads && c.commit > c.group.changing.mark }

// withhold keeps an append. One that begins like another takes its place.
func (c *Core) withhold(m *raftpb.Message) {
	c.withheld = slices.DeleteFunc(c.withheld, func(w *raftpb.Message) bool {
		return w.GetTo() == m.GetTo() && w.GetIndex() == m.GetIndex()
	})
	c.withheld = append(c.withheld, m)
}

// handOver sends what was withheld and need not wait any more: enough is committed, or its receiver
// has a vote by now.
func (c *Core) handOver() {
	c.withheld = slices.DeleteFunc(c.withheld, func(m *raftpb.Message) bool {
		if !c.role.Leading || m.GetTerm() != c.role.Term {
			return true
		}
		goes := !c.withholds(m) && !c.early(m)
		if goes {
			c.send(m)
		}
		return goes
	})
}

// lastIndex is the index of the last entry of a message. Zero means it has none.
func lastIndex(m *raftpb.Message) uint64 {
	if n := len(m.GetEntries()); n > 0 {
		return m.GetEntries()[n-1].GetIndex()
	}
	return 0
}
