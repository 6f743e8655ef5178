package raftlog

// Role is the role of a replica in a term. The zero value precedes the first report.
type Role struct {
	Term    uint64
	Leader  uint64 // raft ID of the known leader; zero means none is known
	Leading bool   // this replica is the leader

	// LastTerm and LastIndex are those of the last entry of the log. They are set only while Leader
	// is 0, when the log does not grow. Voters compare their logs by them.
	LastTerm, LastIndex uint64
}

// Applier is the state machine of a log. All methods are called on the log's owner goroutine, one
// at a time. They must not block and must not call Transfer or Close; all other methods of Log may
// be called from within. A panic retires the log like an error of Apply.
type Applier interface {
	// Role is called on every change of term, leader or role, before anything that belongs to the
	// new role. Batches and rounds from before the change of term or role that have not been
	// applied or confirmed by then never will be.
	Role(Role)

	// Apply applies one log entry: all batches that were proposed together, concatenated in the
	// order of their proposal. Every replica gets the same entries in the same order, with gaps in
	// the indexes. The slice may be kept but must not be changed. An error means that an invariant
	// is broken; the log retires with ErrBroken.
	Apply(index, term uint64, batch []byte) error

	// Leads is called once in each term that this replica leads, when the first entry of that term
	// is applied here. From then on the state holds everything that earlier terms committed. The
	// call is in order with Apply.
	Leads(term uint64)

	// Confirmed answers Confirm(term, round): after that call a majority has confirmed that this
	// replica led, and everything committed by then is applied. The call is in order with Apply.
	Confirmed(term, round uint64)

	// Snapshot begins a snapshot of the present state, after the last Apply or Restore. Entries
	// applied later must not be in it. There is at most one at a time. A Restore, and the end of
	// the log, abandon it: Step is not called again, but an AppendTo may still run. An error means
	// that an invariant is broken, as that of Apply.
	Snapshot() (Capture, error)

	// Restore replaces the state by a snapshot, which holds the entries up to index. It is called
	// at the start with the stored snapshot, and when a leader sends one because it no longer has
	// the entries. The slice may be kept but must not be changed.
	Restore(index, term uint64, state []byte) error

	// Configured reports the present members of the group, after Restore and after each change that
	// is applied. The call is in order with Apply. A replica that is not a member keeps running:
	// whatever asked for its removal must stop it, once its vote is no longer needed.
	Configured(c Configuration)

	// TurnEnd is called at the end of each turn that called another method or sent messages. The
	// Applier can flush there what it has collected.
	TurnEnd()

	// Retired is the last call. It reports that the replica has stopped permanently; nothing more
	// is applied or sent. It is not called if the log was closed. The error is of the kind
	// ErrStorage, ErrPanic, ErrBroken or ErrHung.
	Retired(err error)
}

// Capture is a snapshot that is being taken in steps, with turns between them. A panic in it
// retires the log like one in the Applier.
type Capture interface {
	// Step does a part of the work and reports whether it was the last. It is called on the owner
	// goroutine, once at the end of each turn, after TurnEnd, and lengthens that turn by its own
	// duration. While there are no turns it is called up to 16 times in each millisecond.
	Step() (done bool)

	// AppendTo appends the whole encoded state to b, with a single allocation. It is called once,
	// after the last Step, on another goroutine, concurrently with the Applier. It must call pause
	// often: on few processors it would delay all other goroutines otherwise.
	AppendTo(b []byte, pause func()) []byte
}
