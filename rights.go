package mortise

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/session"
)

// This file is what a derived secret may ask of an instance. A question is checked where its connection ends, which needs no leader, and
// again by the leader: the instance between them forwards the text of the rights, and asks nothing in its own name for others. What the
// commands of a session may do is checked by session's keeper.

// asker is the program for which a question is put. The zero asker is this node itself.
type asker struct {
	rights *capability.Capability // nil is a full instance
	id     nodeid.ID              // of the connection
}

// lookFor puts the question of another program to the leader.
func (n *Node) lookFor(ctx context.Context, from asker, q replica.Question) (sight, error) {
	q.Asker = from.id
	if from.rights != nil {
		if err := q.Allowed(from.rights); err != nil {
			return sight{}, ownError(err)
		}
		q.Under(from.rights, from.id)
	}
	return n.look(ctx, q)
}

// readsAll reports why the asker may not see the state of the whole group.
func (a asker) readsAll() error {
	if a.rights.AllowsPrefix(capability.Read, "") {
		return nil
	}
	return a.lacks("read", "*")
}

// isRoot reports why the asker may not change the group.
func (a asker) isRoot() error {
	if a.rights == nil {
		return nil
	}
	return a.lacks("root", "")
}

func (a asker) lacks(verb, key string) error {
	return &NotAllowedError{Verb: verb, Key: key, For: a.rights.For()}
}

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
