package raftlog

import "errors"

// The kinds of error of this package. Returned and reported errors wrap them; match them with
// errors.Is.
var (
	// ErrStorage is the kind of a retirement whose cause is the Store: an error or a panic of Save
	// or Prepare. It is final, because the contents of a store that has failed are unknown.
	ErrStorage = errors.New("raftlog: storage failed")

	// ErrPanic is the kind of a retirement whose cause is a panic of raft, of the Applier or of the
	// Store. A panic of the Applier is ErrBroken as well, one of the Store ErrStorage.
	ErrPanic = errors.New("raftlog: panic")

	// ErrBroken is the kind of a retirement whose cause is the Applier: an error or a panic of
	// Apply, Restore or Snapshot, or a panic of a Capture. The state machine is unreliable, and it
	// is the same on every replica, so more than this voter must end.
	ErrBroken = errors.New("raftlog: the state machine is broken")

	// ErrHung is the kind of a retirement whose cause is a store or an Applier that makes no
	// progress. A leader retires so after two election timeouts if no other voter has taken over,
	// and any replica of several voters if its store does not make a snapshot durable in time.
	// Close also returns it if one of them has not returned.
	ErrHung = errors.New("raftlog: the store or the state machine hangs")

	// ErrClosed is returned once Close has been called.
	ErrClosed = errors.New("raftlog: closed")

	// ErrNotLeading is returned by Transfer on a replica that does not lead.
	ErrNotLeading = errors.New("raftlog: this replica does not lead")

	// ErrTransfer is returned by Transfer if no other voter took over within an election timeout;
	// the replica still leads.
	ErrTransfer = errors.New("raftlog: no other voter took over the lead")

	// ErrNotEmpty is returned by Found and Join for a store that holds a log already. A raft ID is
	// used once, with one log. Either start the existing log, or found the group under another ID
	// in an empty store.
	ErrNotEmpty = errors.New("raftlog: the store is not empty")

	// ErrIdentity is returned by Start if the store holds nothing, or the log of another group or
	// of another raft ID.
	ErrIdentity = errors.New("raftlog: the store does not hold this log")

	// ErrCorrupt is returned by Start if the store's contents are not a valid log: they have a gap,
	// a commit index beyond the end, and the like.
	ErrCorrupt = errors.New("raftlog: the stored log is corrupt")
)

// must panics on an error that cannot happen; the panic retires the replica.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
