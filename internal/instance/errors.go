package instance

import "errors"

var (
	// ErrVoteLost is returned by Leave if no other instance has taken over the vote.
	ErrVoteLost = errors.New("mortise: left with a vote that no other instance has taken over")

	// ErrBadRequest is returned for a query that exceeds a limit.
	ErrBadRequest = errors.New("mortise: bad request")

	errNoVoter = errors.New("mortise: this instance is not a voter")

	// errNoPeer is returned for a snapshot whose sender is not a replica of this group.
	errNoPeer = errors.New("mortise: the group's configuration names another instance for the raft ID of the sender")
)
