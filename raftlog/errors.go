package raftlog

import "errors"

// The kinds of error of this package. All are met with errors.Is; the errors that are returned or
// reported wrap them with what happened.
var (
	// ErrStorage is the kind of a retirement whose cause is the Store: an error or a panic of Save
	// or Prepare. It is final, since nobody knows what a store that has failed once still holds.
	ErrStorage = errors.New("raftlog: storage failed")

	// ErrPanic is the kind of a retirement whose cause is a panic, of raft or of the Applier; the
	// latter is ErrBroken as well.
	ErrPanic = errors.New("raftlog: panic")

	// ErrBroken is the kind of a retirement whose cause is the Applier: an error or a panic of
	// Apply, Restore or Snapshot, or a panic of a Capture. The state machine can no longer be
	// trusted, so more than this voter has to end.
	ErrBroken = errors.New("raftlog: the state machine is broken")

	// ErrHung is the kind of the retirement of a leader whose store or apply stood still for two
	// election timeouts, and that found nobody to lead in its place, and of a replica whose store
	// does not make a snapshot durable. Close returns it, too, if one of them has not returned.
	ErrHung = errors.New("raftlog: the store or the state machine hangs")

	// ErrClosed is returned once Close has been called.
	ErrClosed = errors.New("raftlog: closed")

	// ErrNotLeading is returned by Transfer on a replica that does not lead.
	ErrNotLeading = errors.New("raftlog: this replica does not lead")

	// ErrTransfer is returned by Transfer if nobody took over within an election timeout; the
	// replica leads on.
	ErrTransfer = errors.New("raftlog: nobody took over the lead")

	// ErrNotEmpty is returned by Found and Join for a store that holds a log already. A raft ID
	// lives once, with one log: found the group under another ID in an empty store, or start the
	// log that is there.
	ErrNotEmpty = errors.New("raftlog: the store is not empty")

	// ErrIdentity is returned by Start if the store holds nothing, or the log of another group or
	// of another raft ID.
	ErrIdentity = errors.New("raftlog: the store does not hold this log")

	// ErrCorrupt is returned by Start if what the store holds is no log: a gap, a commit index
	// beyond the end, and the like.
	ErrCorrupt = errors.New("raftlog: the stored log is corrupt")
)
