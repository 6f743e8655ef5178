package raftlog

// Role is what a replica is in a term. The zero value precedes the first report.
type Role struct {
	Term    uint64
	Leader  uint64 // raft ID of the leader as far as known, 0: none
	Leading bool   // this replica is the leader

	// LastTerm and LastIndex are those of the last entry of the log, and set only while Leader is
	// 0: then nothing is added to it. By them voters compare their logs.
	LastTerm, LastIndex uint64
}

// Applier is the state machine that a log feeds, and whoever else must know in the same order. All
// methods are called on the log's owner goroutine, one at a time, and must neither block nor call
// Close; Propose, Confirm and the other methods of Log that do not wait may be called from within.
// A panic retires the log like an error of Apply.
type Applier interface {
	// Role is called on every change of term, leader or role, before anything that belongs to the
	// new role. What was proposed or asked to be confirmed before a change and has not come back by
	// then never will.
	Role(Role)

	// Apply applies one log entry: all batches that were proposed together, concatenated in the
	// order of their proposal. Every replica gets the same entries in the same order, with gaps in
	// the indexes. The slice must not be changed and may be kept. An error says that an invariant
	// is broken; the log retires with ErrBroken.
	Apply(index, term uint64, batch []byte) error

	// Leads is called once in each term that this replica leads, when the first entry of that term
	// is applied here: from now on the state holds everything that earlier terms committed. In
	// order with Apply.
	Leads(term uint64)

	// Confirmed answers Confirm(term, round): after that call a majority has confirmed that this
	// replica led, and all that was committed by then is applied. In order with Apply.
	Confirmed(term, round uint64)

	// Snapshot begins a snapshot of the state as it is now, after the last Apply or Restore: what
	// is applied while it is taken is not in it. There is at most one at a time: a Restore, and the
	// end of the log, end the one that was begun, which is then not touched any more. An error says
	// that an invariant is broken, as that of Apply.
	Snapshot() (Capture, error)

	// Restore replaces the state by a snapshot: the entries up to index are in it. Called at the
	// start with the stored one, and when a leader sends one because it no longer has the entries.
	// The slice must not be changed and may be kept.
	Restore(index, term uint64, state []byte) error

	// Configured says of whom the group consists from now on: after Restore, and after each change
	// that is applied. In order with Apply. A replica that is not named goes on all the same: who
	// asked for its removal ends it, when nobody needs its vote any more.
	Configured(c Configuration)

	// TurnEnd is called at the end of each turn in which any other method was called or messages
	// were sent: the moment to hand on what was collected.
	TurnEnd()

	// Retired is the last call, unless the log is closed: the replica has stopped for good, nothing
	// is applied or sent any more. The error is one of the kinds ErrStorage, ErrPanic, ErrBroken,
	// ErrHung.
	Retired(err error)
}

// Capture is a snapshot that is being taken, in steps, so that the group's work goes on between
// them. A panic in it retires the log like one in the Applier.
type Capture interface {
	// Step does a part of the work and reports whether that was the last one. Called on the owner
	// goroutine, once at the end of each turn, after TurnEnd; how much it does is how much longer
	// that turn takes. While there are no turns it is called a few times in each millisecond.
	Step() (done bool)

	// AppendTo appends the whole encoded state to b, which it makes large enough in one go. Called
	// once, after the last Step, on another goroutine, while the Applier goes on. It calls pause
	// often: on few processors all others would wait for it otherwise.
	AppendTo(b []byte, pause func()) []byte
}
