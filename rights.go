package mortise

import (
	"errors"

	"github.com/mortise-lock/mortise/session"
)

// What a derived secret may ask of an instance is checked in package queries, and what the commands of a session may do by session's keeper.

// wayIn is the part of a picture that a program needs to find the leader.
func (s Status) wayIn() Status {
	for i := range s.Voters {
		s.Voters[i].Zone = ""
	}
	return Status{Name: s.Name, Instance: s.Instance, Phase: s.Phase, Group: s.Group, Leader: s.Leader, Session: s.Session, Voters: s.Voters, Waiting: s.Waiting}
}

// ownError returns the error of this package for one that says which right is missing, and others as
// they are.
func ownError(err error) error {
	var denied *session.NotAllowedError
	if errors.As(err, &denied) {
		return (*NotAllowedError)(denied)
	}
	return err
}
