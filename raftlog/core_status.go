package raftlog

// Status is a replica's view of itself and its group at the end of a turn, for operators and
// monitoring.
type Status struct {
	ID         uint64
	Term       uint64
	Leader     uint64 // the known leader; zero means none is known
	Leading    bool
	Commit     uint64   // last index known to be committed
	Applied    uint64   // last index applied here
	Last       uint64   // last index of the log here
	Voters     []uint64 // in ascending order; those of both configurations during a change
	Learners   []uint64 // in ascending order
	InFlight   int      // entries proposed here that are not applied yet
	Queued     int      // bytes that wait to be proposed
	Snapshots  uint64   // snapshots of the state taken here
	Taking     bool     // a snapshot is being taken or made durable
	StateBytes int      // size of the last snapshot, taken here or received; zero means none
	Dropped    uint64   // messages dropped because the inbox was full
	Retired    error    // cause of the retirement; nil while the log runs
}

// Status returns the replica's view of itself, without Dropped and Retired. The slices are shared
// and must not be changed.
func (c *Core) Status() Status {
	return Status{
		ID: c.id, Term: c.role.Term, Leader: c.role.Leader, Leading: c.role.Leading,
		Commit: c.commit, Applied: c.applied, Last: c.last,
		Voters: c.voters, Learners: c.learners,
		InFlight: c.group.inFlight, Queued: c.Queued(), Snapshots: c.taken, Taking: c.taking.step != takeNone,
		StateBytes: len(c.view.snap.GetData()),
	}
}
