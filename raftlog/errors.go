package raftlog

import "errors"

// The kinds of error of this package, to be matched with errors.Is.
var (
	// ErrStorage reports a retirement after an error or a panic of Save or Prepare. It is final,
	// because the contents of a store that has failed are unknown.
	ErrStorage = errors.New("raftlog: storage failed")

	// ErrPanic reports a retirement after a panic. If the Applier panicked, the error also matches
	// ErrBroken; if the Store panicked, it also matches ErrStorage. Otherwise raft panicked. Raft
	// does so when messages or data contradict each other, for example after a log has lost its
	// end.
	ErrPanic = errors.New("raftlog: panic")

	// ErrBroken reports a retirement after an error or a panic of Apply, Restore or Snapshot, or a
	// panic of a Capture. The state machine is the same on every replica, so the caller should end
	// the whole node and not only this voter.
	ErrBroken = errors.New("raftlog: the state machine is broken")

	// ErrHung reports a retirement because the store or the Applier makes no progress. A leader
	// retires for this reason after two election timeouts if no other voter has taken over. Any
	// replica except the only voter of a group also retires if its store needs more than a minute,
	// plus a second for each MiB, to make a snapshot durable. Close also returns ErrHung if one of
	// them has not returned.
	ErrHung = errors.New("raftlog: the store or the state machine hangs")

	// ErrClosed is returned once Close has been called.
	ErrClosed = errors.New("raftlog: closed")

	// ErrNotLeading is returned by Transfer on a replica that does not lead.
	ErrNotLeading = errors.New("raftlog: this replica does not lead")

	// ErrTransfer is returned by Transfer if no other voter took over within an election timeout; the
	// replica still leads.
	ErrTransfer = errors.New("raftlog: no other voter took over the lead")

	// ErrNotEmpty is returned by Found and Join for a store that holds a log already. Start that log,
	// or found the group under another ID in an empty store.
	ErrNotEmpty = errors.New("raftlog: the store is not empty")

	// ErrIdentity is returned by Start if the store is empty, or holds another group or raft ID.
	ErrIdentity = errors.New("raftlog: the store does not hold this log")

	// ErrCorrupt is returned by Start if the store's contents are not a valid log, for example if they
	// have a gap or a commit index beyond the end.
	ErrCorrupt = errors.New("raftlog: the stored log is corrupt")
)

// must panics on an error that cannot happen, which retires the replica.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
