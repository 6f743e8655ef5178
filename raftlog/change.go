package raftlog

// contextMax bounds what is said of a replica when it is added.
const contextMax = 1 << 10

// membersMax bounds a configuration. It is far more than anybody needs, and keeps what names them small.
const membersMax = 1 << 10

// Member is one replica of a group.
type Member struct {
	ID      uint64 // its raft ID
	Context []byte // what was said of it when it was added, at most 1 KiB; nothing to the log, and the same on all replicas
}

// Configuration says of whom a group consists. All replicas have the same one at the same Index. The slices are shared and must not be
// changed.
type Configuration struct {
	Index    uint64   // of the entry that made it; a higher one is a newer one. 1: founded so. 0: not known yet
	Voters   []uint64 // in ascending order
	Outgoing []uint64 // in ascending order; the voters of the other majority while the configuration is joint, otherwise none
	Learners []uint64 // in ascending order; they have no vote. Whoever is to become one when the joint configuration ends is in Outgoing
	Members  []Member // all of them, by ID
}

// Change is a change of the configuration: Add alone, or any of the others together, which then take effect at once. A change of
// several goes through a joint configuration, in which both majorities must agree, and which the leader leaves by itself.
type Change struct {
	Add     *Member  // becomes a learner; an ID is added once
	Promote []uint64 // learners that become voters
	Demote  []uint64 // voters that become learners
	Remove  []uint64 // voters and learners that go
}
