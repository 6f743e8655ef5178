package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// Voters that have not applied a change may still need the vote of a replica that loses its vote
// by that change. If that replica had a longer log, it would refuse its vote, and no leader could
// ever be elected. So a replica that loses its vote must never have a longer log than a majority
// of the remaining voters. Core.careful ensures this for the case that a leader crashes. Two
// rules ensure it in all other cases:
//
//   - While a change is not applied, the leader proposes no batch, because it may itself lose its
//     vote.
//   - After its election, and after each configuration that it applies, the leader sends learners
//     only committed entries. It does so until a later entry is committed. Then a majority of the
//     voters has the commit index of the configuration.

// changes reports whether the leader's log may have a change that is not applied. An earlier leader
// may have proposed that change.
func (c *Core) changes() bool {
	return !c.group.leads || c.pending()
}

// withholds reports whether an append must not be sent yet, because its receiver is a learner and
// its entries are not committed.
func (c *Core) withholds(m *raftpb.Message) bool {
	return lastIndex(m) > c.commit && !c.known() && !slices.Contains(c.members.voters, m.GetTo())
}

// known reports whether a majority of the voters durably knows that the configuration is committed.
func (c *Core) known() bool { return c.group.leads && c.commit > c.group.changing.mark }

func (c *Core) handOver() {
	c.heldBack.withheld = slices.DeleteFunc(c.heldBack.withheld, func(m *raftpb.Message) bool {
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

func lastIndex(m *raftpb.Message) uint64 {
	if n := len(m.GetEntries()); n > 0 {
		return m.GetEntries()[n-1].GetIndex()
	}
	return 0
}

// careful reports whether entries must be durable on this leader before they are sent. This is so
// from the leader's election, or from a change of the configuration, until the configuration is
// applied and a later entry is durable on the leader.
//
// At other times a leader sends entries while it writes them to its disk. If the leader crashes
// before the write ends, another replica may have a longer log. Normally that replica is elected.
// During a change of the configuration, it may be a replica that loses its vote. The remaining
// voters may still need this vote, but the replica refuses it, because their logs are shorter.
func (c *Core) careful() bool {
	return c.role.Leading && (!c.group.leads || c.pending() || c.durable <= c.group.changing.mark)
}

func (c *Core) early(m *raftpb.Message) bool { return lastIndex(m) > c.durable && c.careful() }
