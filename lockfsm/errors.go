package lockfsm

import "errors"

var (
	// ErrMalformed is what Next, Peek and Decode return for bytes that are no command.
	ErrMalformed = errors.New("lockfsm: malformed command")
	// ErrSnapshot is what Restore returns for bytes that are no snapshot, or one of a state that
	// cannot be.
	ErrSnapshot = errors.New("lockfsm: bad snapshot")
	// ErrRules says that the group uses rules that this build does not know. The way out is a newer
	// build.
	ErrRules = errors.New("lockfsm: rules version too new for this build")
	// ErrRevisions says that the revision counter is used up, which no honest group lives to see.
	ErrRevisions = errors.New("lockfsm: revisions used up")
)
