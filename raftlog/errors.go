package raftlog

import "errors"

// These are the kinds of errors of this package, for errors.Is.
var (
	// ErrStorage reports a retirement after an error or a panic of Save or Prepare. The replica
	// cannot continue, because the contents of a store that has failed are unknown.
	ErrStorage = errors.New("raftlog: storage failed")

	// ErrPanic reports a retirement after a panic. After a panic of the Applier the error also
	// matches ErrBroken, and after a panic of the Store it also matches ErrStorage. If the error
	// matches neither, raft or another callback panicked. Raft panics when messages or data
	// contradict each other, for example after a log has lost its last entries.
	ErrPanic = errors.New("raftlog: panic")

	// ErrBroken reports a retirement after an error or a panic of Apply, Restore or Snapshot, or a
	// panic of a Capture.
	ErrBroken = errors.New("raftlog: the state machine is broken")

	// ErrHung reports a retirement because the store or the Applier makes no progress. A leader
	// retires with ErrHung after two election timeouts without progress if no other voter has
	// become the leader. A replica also retires with ErrHung if its store needs more than a minute,
	// plus a second for each MiB, to make a snapshot durable. In a group with only one voter no
	// replica retires with ErrHung. Close returns ErrHung if a call of the store or of the Applier
	// does not return.
	ErrHung = errors.New("raftlog: the store or the state machine hangs")

	// ErrClosed is returned once Close has been called.
	ErrClosed = errors.New("raftlog: closed")

	// ErrNotLeading is returned by Transfer on a replica that does not lead.
	ErrNotLeading = errors.New("raftlog: this replica does not lead")

	// ErrTransfer is returned by Transfer if no other voter became the leader within an election
	// timeout. This replica is then still the leader.
	ErrTransfer = errors.New("raftlog: no other voter took over the lead")

	// ErrNotEmpty is returned by Found and Join if the store already holds a log. Call Start to run
	// that log, or call Found or Join with an empty store and another ID.
	ErrNotEmpty = errors.New("raftlog: the store is not empty")

	// ErrIdentity is returned by Start if the store is empty, or if it holds the log of another
	// group or another replica.
	ErrIdentity = errors.New("raftlog: the store does not hold this log")

	// ErrCorrupt is returned by Start if the store's contents are not a valid log, for example if
	// entries are missing or the commit index is higher than the index of the last entry.
	ErrCorrupt = errors.New("raftlog: the stored log is corrupt")
)

// must panics if err is not nil. It is for errors that cannot happen.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
