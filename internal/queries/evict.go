package queries

import (
	"fmt"
	"math"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// ErrBadRequest means that a question contradicts itself or exceeds a limit.
var ErrBadRequest = locker.ErrBadRequest

const maxByBytes = 128 // also the limit of the name of an instance

// CheckEvict returns an error that wraps [ErrBadRequest] if a hold cannot be ended as q says. The
// texts of q are kept in the group's state, and shown to every operator. So the instance that sends
// q checks them for its caller, and the leader checks them again.
func CheckEvict(q *query.EvictRequest) error {
	if err := checkForce(string(q.By), string(q.Reason)); err != nil {
		return err
	}
	if !IsToken(q.Token) {
		return fmt.Errorf("%w: no hold has token %d; Peek reports the token of the holder", ErrBadRequest, q.Token)
	}
	return nil
}

// IsToken reports whether a hold can have the token. The group refuses all others as malformed.
func IsToken(token uint64) bool { return token != 0 && token <= math.MaxInt64 }

// CheckValue is like CheckEvict, for a change of the value of a hold.
func CheckValue(q *query.ValueRequest) error {
	switch {
	case !IsToken(q.Token):
		return fmt.Errorf("%w: no hold has token %d; Peek reports the token of the holder", ErrBadRequest, q.Token)
	case len(q.Value) > lockfsm.MaxValueBytes:
		return fmt.Errorf("%w: Value and Labels have %d bytes, more than %d", ErrBadRequest, len(q.Value),
			lockfsm.MaxValueBytes)
	}
	return nil
}

// CheckEndSession is like CheckEvict, for the end of a session.
func CheckEndSession(q *query.EndSessionRequest) error {
	if err := checkForce(string(q.By), string(q.Reason)); err != nil {
		return err
	}
	if q.Session == 0 {
		return fmt.Errorf("%w: no session has the ID 0; Sessions reports the IDs", ErrBadRequest)
	}
	return nil
}

// CheckTransferLead is like CheckEvict, for a move of the leadership.
func CheckTransferLead(q *query.TransferLeadRequest) error {
	if err := checkForce(string(q.By), string(q.Reason)); err != nil {
		return err
	}
	if name := string(q.Name); name == "" || len(name) > maxByBytes || !plain.Is(name) {
		return fmt.Errorf("%w: %q is no name of an instance; Members reports the names", ErrBadRequest, name)
	}
	return nil
}

func checkForce(by, reason string) error {
	switch {
	case by == "" || len(by) > maxByBytes || !plain.Is(by):
		return fmt.Errorf("%w: By %q is empty, has more than %d bytes, or %s", ErrBadRequest, by, maxByBytes,
			plain.NotText)
	case len(reason) > lockfsm.MaxValueBytes:
		return fmt.Errorf("%w: the reason has %d bytes, more than %d", ErrBadRequest, len(reason),
			lockfsm.MaxValueBytes)
	case !plain.Is(reason):
		return fmt.Errorf("%w: the reason, %q, %s", ErrBadRequest, reason, plain.NotText)
	}
	return nil
}

// proved returns the name of the program that ends a hold or a session, or moves the leadership,
// for the log, the audit log and the holder. The program's ID and the name in a derived secret's
// capability are authenticated. The program's own name is only a claim.
func proved(by *query.Origin, rights *capability.Capability, says string) string {
	asker := ID(by.GetAsker())
	switch {
	case asker.IsZero():
		return says // the instance itself asks, with its own name
	case rights == nil:
		return fmt.Sprintf("%s (instance %v)", says, asker)
	}
	return fmt.Sprintf("%s (instance %v, claims to be %q)", rights.For(), asker, says)
}
