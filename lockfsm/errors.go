package lockfsm

import "errors"

var (
	// ErrMalformed is returned by Next, Peek and Decode for bytes that are not a command.
	ErrMalformed = errors.New("lockfsm: malformed command")
	// ErrSnapshot is returned by Restore for bytes that are not a snapshot of a possible state.
	ErrSnapshot = errors.New("lockfsm: bad snapshot")
	// ErrRules means that this build does not have the rules version of the group. Run a newer
	// build.
	ErrRules = errors.New("lockfsm: rules version too new for this build")
	// ErrRevisions means that the revision counter is used up, which no real group reaches.
	ErrRevisions = errors.New("lockfsm: revisions used up")
)
