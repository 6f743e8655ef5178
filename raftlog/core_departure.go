package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// A replica that loses its vote may learn of it before other voters, which still need its vote. If
// its log were longer than theirs, it would refuse to vote for them, and no leader could ever be
// elected. So its log is never longer than those of a majority of the remaining voters. Two rules
// ensure that; careful covers what a leader loses in a crash:
//
//   - No batch is proposed behind a change of the configuration until that is applied: the leader
//     itself may lose its vote.
//   - Learners are sent only committed entries until an entry behind the configuration is
//     committed. By that entry a majority of the voters knows which replicas vote.

// changes reports whether the log may contain a change of the configuration that is not applied:
// one of this leader, one of an earlier leader, or the end of a joint configuration.
func (c *Core) changes() bool {
	return !c.group.leads || c.pending()
}

// withholds reports whether an append to a learner must not be sent yet.
func (c *Core) withholds(m *raftpb.Message) bool {
	return lastIndex(m) > c.commit && !c.known() && !slices.Contains(c.voters, m.GetTo())
}

// known reports whether a majority of the voters durably knows that the configuration is committed.
func (c *Core) known() bool { return c.group.leads && c.commit > c.group.changing.mark }

// withhold keeps an append. A later append to the same receiver with the same index replaces it.
func (c *Core) withhold(m *raftpb.Message) {
	c.withheld = slices.DeleteFunc(c.withheld, func(w *raftpb.Message) bool {
		return w.GetTo() == m.GetTo() && w.GetIndex() == m.GetIndex()
	})
	c.withheld = append(c.withheld, m)
}

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

// lastIndex returns the index of a message's last entry. Zero means none.
func lastIndex(m *raftpb.Message) uint64 {
	if n := len(m.GetEntries()); n > 0 {
		return m.GetEntries()[n-1].GetIndex()
	}
	return 0
}
