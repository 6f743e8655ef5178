package raftlog

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// Status is the state of a replica at the end of a turn, for operators and monitoring.
type Status struct {
	ID         uint64
	Term       uint64
	Leader     uint64 // raft ID of the known leader; zero means none is known
	Leading    bool
	Commit     uint64   // index of the last entry known to be committed
	Applied    uint64   // index of the last entry that this replica has applied
	Last       uint64   // index of the last entry in the log of this replica
	Voters     []uint64 // in ascending order; in a joint configuration, the old and the new voters
	Learners   []uint64 // in ascending order
	InFlight   int      // entries proposed here that are not applied yet
	Queued     int      // bytes that wait to be proposed
	Snapshots  uint64   // number of snapshots that this replica has taken
	Taking     bool     // a snapshot is being taken or made durable
	StateBytes int      // size of the last snapshot, taken or received; zero means none
	Dropped    uint64   // number of messages dropped because the inbox was full
	Retired    error    // cause of the retirement; nil while the log runs
	// Starved is the time for which the machine gave the process no processor although the owner's
	// timer was due, in gaps of at least clock.StarvedAfter. StarvedEnd is when the last one ended,
	// and is zero if there was none.
	Starved    time.Duration
	StarvedEnd clock.Time
}

// Status returns the present Status, without the fields Dropped, Retired, Starved and StarvedEnd.
// The slices are shared and must not be changed.
func (c *Core) Status() Status {
	return Status{
		ID: c.id, Term: c.role.Term, Leader: c.role.Leader, Leading: c.role.Leading,
		Commit: c.commit, Applied: c.applied, Last: c.last,
		Voters: c.members.voters, Learners: c.members.learners,
		InFlight: c.group.inFlight, Queued: c.Queued(), Snapshots: c.snapshots.taken, Taking: c.snapshots.busy(),
		StateBytes: len(c.view.snap.GetData()),
	}
}
