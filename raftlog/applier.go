package raftlog

// Role is the role of a replica in a term. The zero value precedes the first report.
type Role struct {
	Term    uint64
	Leader  uint64 // raft ID of the known leader; zero means none is known
	Leading bool

	// LastTerm and LastIndex are the term and index of the last entry of the log, by which voters
	// compare logs. They are set only while Leader is 0.
	LastTerm, LastIndex uint64
}

// Applier is the state machine of a log. Its methods are called on the log's owner goroutine, one
// at a time. They must not block, nor call Transfer or Close; other methods of Log are allowed. A
// panic retires the log like an error of Apply.
type Applier interface {
	// Role is called on every change of term, leader or role, before anything that belongs to the
	// new role. A change of term or role discards all batches that are not applied and all rounds
	// that are not confirmed.
	Role(Role)

	// Apply applies one log entry: all batches that were proposed together, in order. Every replica
	// gets the same entries in the same order; indexes may have gaps. The slice may be kept but must
	// not be changed. After an error, which means that an invariant is broken, the log retires with
	// ErrBroken.
	Apply(index, term uint64, batch []byte) error

	// Leads is called once in each term in which this replica leads, when it applies the first
	// entry of that term. At that time the state contains everything that was committed in earlier
	// terms.
	Leads(term uint64)

	// Confirmed answers Confirm(term, round). After that call a majority confirmed that this
	// replica led, and everything that was committed before the confirmation is applied.
	Confirmed(term, round uint64)

	// Snapshot begins a snapshot of the present state. Entries applied later must not be in it.
	// There is at most one at a time. A Restore or the end of the log abandons it: Step is not
	// called again, but AppendTo may still run. An error has the same effect as an error of Apply.
	Snapshot() (Capture, error)

	// Restore replaces the state by a snapshot, which holds the entries up to index: the stored one at
	// the start, or one that a leader sends. The slice may be kept but must not be changed.
	Restore(index, term uint64, state []byte) error

	// Configured reports the members of the group after Restore, and after each change when it is
	// applied. A replica that is no longer a member keeps running. The caller that asked for the
	// removal must stop the replica when its vote is no longer needed.
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
	// after the last Step, concurrently with the Applier. It must call pause often; otherwise it
	// delays all other goroutines on a machine with few processors.
	AppendTo(b []byte, pause func()) []byte
}
