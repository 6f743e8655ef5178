package raftlog

import "go.etcd.io/raft/v3/raftpb"

// Status returns the replica's view of itself. Dropped and Retired are the shell's. The slices are shared and must not
// be changed.
func (c *Core) Status() Status {
	return Status{
		ID: c.id, Term: c.role.Term, Leader: c.role.Leader, Leading: c.role.Leading,
		Commit: c.commit, Applied: c.applied, Last: c.last,
		Voters: c.voters, Learners: c.learners,
		InFlight: c.group.inFlight, Queued: c.Queued(), Snapshots: c.taken, Taking: c.taking.step != takeNone, StateBytes: len(c.view.snap.GetData()),
	}
}

// configured files the configuration that holds from now on, and has it reported. While this replica leads, everything that raft has
// been given to store is handed out by now, so that the end of the log is the end of what was proposed before.
func (c *Core) configured(conf *raftpb.ConfState, config Configuration) {
	c.conf, c.config = conf, config
	c.voters = union(conf.GetVoters(), conf.GetVotersOutgoing())
	c.learners = union(conf.GetLearners(), conf.GetLearnersNext())
	c.group.changing.mark = c.last
	c.listen(false)
	c.unseen = true
	c.out.Events = append(c.out.Events, Event{Kind: Configured, Config: &config})
}
