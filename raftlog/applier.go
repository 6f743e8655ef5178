package raftlog

// Role is the role of a replica in a term. The zero value precedes the first report.
type Role struct {
	Term    uint64
	Leader  uint64 // raft ID of the known leader; zero means none is known
	Leading bool

	// LastTerm and LastIndex are those of the last log entry, by which voters compare their logs. They
	// are set only while Leader is 0.
	LastTerm, LastIndex uint64
}

// Applier is the state machine of a log. Its methods are called on the log's owner goroutine, one
// at a time. They must not block, nor call Transfer or Close; other methods of Log are allowed. A
// panic retires the log like an error of Apply.
type Applier interface {
	// Role is called on every change of term, leader or role, before anything that belongs to the new
	// role. A change of term or role discards all batches and rounds that are not yet applied or
	// confirmed.
	Role(Role)

	// Apply applies one log entry: all batches that were proposed together, in order. Every replica
	// gets the same entries in the same order; indexes may have gaps. The slice may be kept but must
	// not be changed. After an error, which means that an invariant is broken, the log retires with
	// ErrBroken.
	Apply(index, term uint64, batch []byte) error

	// Leads is called once in each term that this replica leads, when it applies the first entry of
	// that term. The state then holds everything that earlier terms committed.
	Leads(term uint64)

	// Confirmed answers Confirm(term, round): after that call a majority confirmed that this replica
	// led, and everything committed by then is applied.
	Confirmed(term, round uint64)

	// Snapshot begins a snapshot of the present state. Entries applied later must not be in it. There
	// is at most one at a time. A Restore or the end of the log abandons it: Step is not called again,
	// but AppendTo may still run. An error is treated like one of Apply.
	Snapshot() (Capture, error)

	// Restore replaces the state by a snapshot, which holds the entries up to index: the stored one at
	// the start, or one that a leader sends. The slice may be kept but must not be changed.
	Restore(index, term uint64, state []byte) error

	// Configured reports the members of the group after Restore, and after each change when it is
	// applied. A replica that is no longer a member keeps running. Whatever asked for its removal must
	// stop it, once its vote is not needed any more.
	Configured(c Configuration)

	// TurnEnd is called at the end of each turn that called another method or sent messages, so that
	// the Applier can flush.
	TurnEnd()

	// Retired is the last call: the replica has stopped permanently. It is not called if the log was
	// closed. The error is of the kind ErrStorage, ErrPanic, ErrBroken or ErrHung.
	Retired(err error)
}

// Capture is a snapshot that is taken in steps, with turns between them. A panic in it retires the
// log like one in the Applier.
type Capture interface {
	// Step does a part of the work and reports whether it was the last. It is called on the owner
	// goroutine at the end of each turn, after TurnEnd. While there are no turns it is called up to 16
	// times in each millisecond.
	Step() (done bool)

	// AppendTo appends the whole encoded state to b, with a single allocation. It is called once,
	// after the last Step, concurrently with the Applier. It must call pause often, or with few
	// processors it delays all other goroutines.
	AppendTo(b []byte, pause func()) []byte
}
