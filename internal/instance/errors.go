package instance

import "errors"

var (
	// ErrVoteLost is returned by Leave if no other instance has taken over the vote.
	ErrVoteLost = errors.New("mortise: left with a vote that no other instance has taken over")

	// ErrBadRequest is returned for a query that exceeds a limit.
	ErrBadRequest = errors.New("mortise: bad request")

	// errNoVoter answers a frame to the keeper of an instance without a replica.
	errNoVoter = errors.New("mortise: this instance is not a voter")

	// errNoPeer answers a snapshot that does not come from a replica of this group.
	errNoPeer = errors.New("mortise: the address book here has another instance under that raft ID")
)
