package instance

import "errors"

var (
	// ErrVoteLost says that Leave has ended with a vote that no other instance has taken over.
	ErrVoteLost = errors.New("mortise: left with a vote that no other instance has taken over")

	// ErrBadRequest says that a question goes beyond a limit.
	ErrBadRequest = errors.New("mortise: bad request")

	// errNoVoter is what a frame for the keeper of this instance gets while the instance has none.
	errNoVoter = errors.New("mortise: this instance is no voter")

	// errNoPeer is what a snapshot gets that comes from no replica of our log.
	errNoPeer = errors.New("mortise: the address book here has another instance under that raft ID")
)
