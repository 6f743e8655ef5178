package client

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/lockfsm"
)

// The errors of a session. The root package hands them on, so they speak in its name.
var (
	// ErrLost says that a hold ended without its caller's doing: the lease ran out, the session
	// ended, or the instance began a new life.
	ErrLost = errors.New("mortise: the lock was lost")
	// ErrReleased says that a hold was released by its caller.
	ErrReleased = errors.New("mortise: the lock was released")
	// ErrClosed says that the client is closed, or that its session was closed by CloseSession.
	ErrClosed = errors.New("mortise: the node is closed")
	// ErrOverloaded says that this instance has too many unfinished requests, by its own limit
	// (then nothing was sent) or the group's. Try again when some have finished.
	ErrOverloaded = errors.New("mortise: too many unfinished requests on this instance")
	// ErrQueueFull says that too many requests wait for the same key.
	ErrQueueFull = errors.New("mortise: the queue of this lock is full")
	// ErrBadKey says that the key is empty, too long, or not plain UTF-8 text.
	ErrBadKey = errors.New("mortise: bad key")
	// ErrHeld says that a try request met a lock that is held; the error is a *HeldError.
	ErrHeld = errors.New("mortise: the lock is held")
	// ErrInGrace answers a try request while a new group waits for the leases of an earlier one to
	// end.
	ErrInGrace = errors.New("mortise: the group is in its grace, nothing is granted yet")
	// ErrNoLeader answers a try request when no leader has been found for two seconds.
	ErrNoLeader = errors.New("mortise: no leader for two seconds")
	// ErrLeaving says that the instance has begun to leave and takes no new requests.
	ErrLeaving = errors.New("mortise: the node is leaving")
	// ErrStillHeld is CloseSession's answer while locks are held.
	ErrStillHeld = errors.New("mortise: locks are still held; release them before closing the session")
	// ErrNotHeld says that a hold that was to be taken up is over, or has another token.
	ErrNotHeld = errors.New("mortise: the lock is not held with this token")
	// ErrNoRoom says that something is kept in a number that is bounded, or has a budget of bytes,
	// and that no more of it can be; a *BudgetError names the budget. No wait changes that.
	ErrNoRoom = errors.New("mortise: as many are kept as may be")
	// ErrRefused says that the group refused a request for a reason that has no error of its own;
	// the text names it.
	ErrRefused = errors.New("mortise: the group refused the request")
)

// OverdueError says that a hold ended because it had lasted as long as its request allows. It is
// ErrLost for errors.Is.
type OverdueError struct{}

func (OverdueError) Error() string {
	return "mortise: the lock was lost: it was held for as long as its request allows"
}

// Is reports whether target is ErrLost.
func (OverdueError) Is(target error) bool { return target == ErrLost }

// WaitError is what a call gets whose context ended while it waited: Err is the context's error
// with its cause.
type WaitError struct {
	Key    string
	Behind *HeldError // who held the lock when the request was applied; nil if that is not known, as without a leader
	Err    error
}

// Error names the key and who was in the way.
func (e *WaitError) Error() string {
	if e.Behind == nil {
		return fmt.Sprintf("mortise: waiting for %q: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("mortise: waiting for %q, held with token %d: %v", e.Key, e.Behind.Token, e.Err)
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Err }

// HeldError answers a try request that met a held lock. It is ErrHeld for errors.Is. Its fields
// describe the moment at which the request was applied.
type HeldError struct {
	Key         string
	Session     lockfsm.SessionID // who holds it
	Record      []byte            // the holder's instance record, as given to Rebind there; owned by the receiver
	Token       lockfsm.Token     // the holder's token
	SinceUnixMS int64             // the leader's wall clock at the grant, in Unix milliseconds
	Waiters     int               // how many wait behind it
	Value       []byte            // of the holder's request; owned by the receiver
}

// DeadlockError answers a request that would have waited for its own owner. Its circle begins with
// the request.
type DeadlockError struct {
	Circle []lockfsm.Link // owned by the receiver
}

// Error names the keys of the circle.
func (e *DeadlockError) Error() string {
	text := "mortise: deadlock"
	for i, link := range e.Circle {
		text += fmt.Sprintf("%s session %d waits for %q", []string{":", ","}[min(i, 1)], link.Session, link.Key)
	}
	return text
}

// ForcedError is why a hold was lost that others have ended. It is ErrLost for errors.Is.
type ForcedError struct {
	By     string // who, as he said
	Reason string // why, as he said
}

// Error says who and why.
func (e *ForcedError) Error() string {
	return fmt.Sprintf("mortise: the lock was ended by %s: %s", e.By, e.Reason)
}

// Is reports whether target is ErrLost.
func (e *ForcedError) Is(target error) bool { return target == ErrLost }

// TakenError is why a hold was lost that another session has taken up by its token. It is ErrLost
// for errors.Is.
type TakenError struct {
	Record []byte // of the taker's session; owned by the receiver
}

// Error says what has happened.
func (*TakenError) Error() string { return "mortise: the lock was taken up by its token elsewhere" }

// Is reports whether target is ErrLost.
func (*TakenError) Is(target error) bool { return target == ErrLost }

// Error names the key and how many wait.
func (e *HeldError) Error() string {
	return fmt.Sprintf("mortise: %q is held with token %d, %d waiting", e.Key, e.Token, e.Waiters)
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
