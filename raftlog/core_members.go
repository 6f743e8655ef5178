package raftlog

import "go.etcd.io/raft/v3/raftpb"

// members are those of the last configuration entry that this replica has applied.
type members struct {
	config           Configuration     // includes their contexts
	conf             *raftpb.ConfState // the same, for raft
	voters, learners []uint64          // with those of both halves of a joint configuration
}

func newMembers(config Configuration, conf *raftpb.ConfState) members {
	return members{
		config: config, conf: conf, voters: union(conf.GetVoters(), conf.GetVotersOutgoing()),
		learners: union(conf.GetLearners(), conf.GetLearnersNext()),
	}
}
