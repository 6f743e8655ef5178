package instance

import "errors"

var (
	// ErrVoteLost means that no other instance has taken over the vote of an instance that left.
	ErrVoteLost = errors.New("mortise: left with a vote that no other instance has taken over")

	errNoVoter = errors.New("mortise: this instance is not a voter")

	// errNoPeer means that the sender of a snapshot is not a replica of this group.
	errNoPeer = errors.New("mortise: the group's configuration names another instance for the raft ID of the sender")
)
