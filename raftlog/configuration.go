package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

const maxContext = 1 << 10

// maxMembers bounds the members of a group, so that the list of members in a snapshot stays small.
const maxMembers = 1 << 10

// Member is one replica of a group.
type Member struct {
	ID uint64
	// Context was given when the member was added. It has at most 1 KiB. The log does not interpret
	// it.
	Context []byte
}

// Configuration lists the members of a group. Two configurations with the same Index are equal,
// even on different replicas. The slices are shared and must not be changed.
type Configuration struct {
	Index  uint64   // index of its log entry; 1 in a new group, 0 if no configuration is known yet
	Voters []uint64 // in ascending order
	// Outgoing lists the voters of the old majority in a joint configuration, in ascending order.
	// Otherwise it is empty.
	Outgoing []uint64
	// Learners lists the replicas without a vote, in ascending order. In a joint configuration,
	// voters that become learners are in Outgoing instead.
	Learners []uint64
	Members  []Member // every voter and learner, by ID
}

// Change is a change of the configuration: either Add alone, or any of Promote, Demote and Remove,
// which take effect together. A change of several replicas goes through a joint configuration,
// which the leader leaves by itself.
type Change struct {
	Add     *Member  // a new learner; an ID must not be added a second time
	Promote []uint64 // learners that become voters
	Demote  []uint64 // voters that become learners
	Remove  []uint64 // voters and learners to remove
}

func newConfiguration(index uint64, conf *raftpb.ConfState, known []Member) Configuration {
	c := Configuration{
		Index:  index,
		Voters: union(conf.GetVoters(), nil), Outgoing: union(conf.GetVotersOutgoing(), nil),
		Learners: union(conf.GetLearners(), nil),
	}
	for _, id := range union(union(c.Voters, c.Outgoing), union(c.Learners, conf.GetLearnersNext())) {
		m := Member{ID: id}
		if i := slices.IndexFunc(known, func(k Member) bool { return k.ID == id }); i >= 0 {
			m = known[i]
		}
		c.Members = append(c.Members, m)
	}
	return c
}

func union(a, b []uint64) []uint64 {
	if len(a)+len(b) == 0 {
		return nil
	}
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}

func (c *Configuration) has(id uint64) bool {
	return slices.ContainsFunc(c.Members, func(m Member) bool { return m.ID == id })
}

// plan converts a change to raft's form, without the context of a new member. It reports false for
// a change that would make raft panic or do nothing.
func (c *Configuration) plan(ch Change) (*raftpb.ConfChangeV2, bool) {
	if ch.Add != nil {
		m := *ch.Add
		alone := len(ch.Promote)+len(ch.Demote)+len(ch.Remove) == 0
		if !alone || !validID(m.ID) || c.has(m.ID) || len(m.Context) > maxContext || len(c.Members) >= maxMembers {
			return nil, false
		}
		return &raftpb.ConfChangeV2{Changes: single(nil, raftpb.ConfChangeAddLearnerNode, m.ID)}, true
	}
	voters, touched := len(c.Voters), []uint64(nil)
	var changes []*raftpb.ConfChangeSingle
	for _, id := range ch.Promote {
		if !slices.Contains(c.Learners, id) {
			return nil, false
		}
		changes, touched, voters = single(changes, raftpb.ConfChangeAddNode, id), append(touched, id), voters+1
	}
	for _, id := range ch.Demote {
		if !slices.Contains(c.Voters, id) {
			return nil, false
		}
		changes, touched, voters = single(changes, raftpb.ConfChangeAddLearnerNode, id), append(touched, id), voters-1
	}
	for _, id := range ch.Remove {
		if !c.has(id) {
			return nil, false
		}
		if slices.Contains(c.Voters, id) {
			voters--
		}
		changes, touched = single(changes, raftpb.ConfChangeRemoveNode, id), append(touched, id)
	}
	if len(changes) == 0 || voters < 1 || len(union(touched, nil)) != len(touched) {
		return nil, false
	}
	cc := &raftpb.ConfChangeV2{Changes: changes}
	switch {
	case len(changes) == 1: // raft needs no joint configuration
	default:
		cc.Transition = raftpb.ConfChangeTransitionJointImplicit.Enum()
	}
	return cc, true
}

func single(list []*raftpb.ConfChangeSingle, kind raftpb.ConfChangeType, id uint64) []*raftpb.ConfChangeSingle {
	return append(list, &raftpb.ConfChangeSingle{Type: kind.Enum(), NodeId: &id})
}

func validID(id uint64) bool { return id != 0 && !raft.IsLocalMsgTarget(id) }
