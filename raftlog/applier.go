package raftlog

// Role is the role of a replica in a term. The zero value is the role before the first call of
// Applier.Role.
type Role struct {
	Term    uint64
	Leader  uint64 // raft ID of the known leader; zero means none is known
	Leading bool

	// LastTerm and LastIndex are the term and the index of the last log entry. They are set only if
	// Leader is zero.
	LastTerm, LastIndex uint64
}

// Applier is the state machine of a log. Its methods are called on the log's owner goroutine, one
// at a time. They must not block and must not call Transfer or Close. They may call all other
// methods of Log. A panic in a method retires the log, like an error of Apply.
type Applier interface {
	// Role is called on every change of term, leader or role. It is called before every other
	// method of the Applier, and before messages of the new role are sent. A change of term or role
	// discards all batches that are not applied and all rounds that are not confirmed.
	Role(Role)

	// Apply applies one log entry: all batches that were proposed together, in order. Every replica
	// gets the same entries in the same order; indexes may have gaps. The Applier may keep the
	// slice but must not change it. After an error the log retires with ErrBroken.
	Apply(index, term uint64, batch []byte) error

	// Leads is called once in each term in which this replica is the leader, when the first entry
	// of that term is applied. The state then has all entries of earlier terms that were committed.
	Leads(term uint64)

	// Confirmed answers a call of Confirm(term, round). A majority has confirmed, after that call,
	// that this replica is the leader. All entries that were committed before the call are applied.
	Confirmed(term, round uint64)

	// Snapshot begins a snapshot of the present state. Entries applied later must not change the
	// snapshot. There is at most one snapshot at a time. Restore or the end of the log abandons the
	// snapshot: Capture.Step is not called again, but AppendTo may still be running. An error
	// retires the log.
	Snapshot() (Capture, error)

	// Restore replaces the state by a snapshot, which holds the entries up to index. At the start
	// of the log the snapshot comes from the store, later from a leader. The Applier may keep the
	// slice but must not change it.
	Restore(index, term uint64, state []byte) error

	// Configured reports the members of the group: after each Restore, and whenever a change of the
	// configuration is applied. A replica that is no longer a member keeps running. The caller that
	// requested the removal must stop the replica when the group no longer needs its vote.
	Configured(c Configuration)

	// TurnEnd is called at the end of a turn if the owner has called another method or sent messages
	// in that turn. The Applier can then flush buffers.
	TurnEnd()

	// Retired reports that the replica has stopped permanently. No other method is called after
	// Retired. Retired is not called if the log was closed. The error is of the kind ErrStorage,
	// ErrPanic, ErrBroken, ErrDiverged or ErrHung.
	Retired(err error)
}

// Capture is a snapshot that is taken in steps. Between two steps the owner goroutine does other
// work. A panic in a method retires the log.
type Capture interface {
	// Step does a part of the work and reports whether the work is complete. The owner goroutine
	// calls Step once at the end of each turn, after TurnEnd. While the owner is idle, it calls
	// Step up to 16 times in each millisecond.
	Step() (done bool)

	// AppendTo appends the whole encoded state to b, with a single allocation. It is called once,
	// after the last Step, concurrently with the methods of the Applier. AppendTo must call pause
	// often, so that it does not delay other goroutines on a host with few processors.
	AppendTo(b []byte, pause func()) []byte
}
