package raftlog

import "errors"

// These are the errors of this package, for errors.Is.
var (
	// ErrStorage reports a retirement after an error or a panic of Save or Prepare. The replica
	// cannot continue, because the contents of the failed store are unknown.
	ErrStorage = errors.New("raftlog: storage failed")

	// ErrPanic reports a retirement after a panic. After a panic of the Applier the error also
	// matches ErrBroken, and after a panic of the Store it also matches ErrStorage. Otherwise raft
	// or another callback panicked. Raft panics when messages or data contradict each other.
	ErrPanic = errors.New("raftlog: panic")

	// ErrWentBack reports a retirement because the leader knows that this replica has stored more
	// than its log contains. So the store was put back in an earlier state. The replica may have
	// forgotten a vote, too, and must never run again.
	ErrWentBack = errors.New("raftlog: the store was put back in an earlier state")

	// ErrBroken reports a retirement after an error or a panic of Apply, Restore or Snapshot, or a
	// panic of a Capture.
	ErrBroken = errors.New("raftlog: the state machine is broken")

	// ErrDiverged reports a retirement because a majority of the voters has another state after the
	// same entry. The error also matches ErrBroken.
	ErrDiverged = errors.New("raftlog: the state of this replica differs from that of the majority")

	// ErrHung means that the replica has retired because the store or the Applier made no
	// progress. A leader retires if no other voter has become the leader after two election
	// timeouts without progress. A replica also retires if its store needs more than a minute,
	// plus a second for each MiB, to make a snapshot durable. In a group with one voter no
	// replica retires with ErrHung. Close also returns ErrHung if a call of the store or of the
	// Applier does not return.
	ErrHung = errors.New("raftlog: the store or the state machine hangs")

	// ErrClosed is returned once Close has been called.
	ErrClosed = errors.New("raftlog: closed")

	// ErrNotLeading is returned by Transfer on a replica that does not lead.
	ErrNotLeading = errors.New("raftlog: this replica does not lead")

	// ErrTransfer is returned by Transfer if this replica still leads after an election timeout, or if
	// another voter than the given one leads.
	ErrTransfer = errors.New("raftlog: the lead was not passed on as asked")

	// ErrNotEmpty is returned by Found and Join if the store already holds a log. Start runs that
	// log.
	ErrNotEmpty = errors.New("raftlog: the store is not empty")

	// ErrIdentity is returned by Start if the store is empty or holds the log of another group or
	// replica.
	ErrIdentity = errors.New("raftlog: the store does not hold this log")

	// ErrCorrupt is returned by Start if the store's contents are not a valid log, for example if
	// entries are missing.
	ErrCorrupt = errors.New("raftlog: the stored log is corrupt")
)

// must is for errors that cannot happen. It panics if err is not nil.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
