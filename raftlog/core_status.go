package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// Status returns the replica's view of itself. Dropped and Retired are the shell's. The slices are shared and must not
// be changed.
func (c *Core) Status() Status {
	return Status{
		ID: c.id, Term: c.role.Term, Leader: c.role.Leader, Leading: c.role.Leading,
		Commit: c.commit, Applied: c.applied, Last: c.last,
		Voters: c.voters, Learners: c.learners,
		InFlight: c.group.inFlight, Queued: c.Queued(), Snapshots: c.taken,
	}
}

// configured files the configuration that holds from now on.
func (c *Core) configured(conf *raftpb.ConfState) {
	c.conf = conf
	c.voters = union(conf.GetVoters(), conf.GetVotersOutgoing())
	c.learners = union(conf.GetLearners(), conf.GetLearnersNext())
}

// union returns the members of both in ascending order, once each.
func union(a, b []uint64) []uint64 {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}
