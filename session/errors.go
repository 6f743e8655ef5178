package session

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/lockfsm"
)

// The errors of a session. The root package maps them to its own.
var (
	// ErrLost says that a hold ended without its caller's doing: the lease ran out, the session ended, or the instance began a new life.
	ErrLost = errors.New("session: the lock was lost")
	// ErrReleased says that a hold was released by its caller.
	ErrReleased = errors.New("session: the lock was released")
	// ErrClosed says that the client is closed, or that its session was closed by CloseSession.
	ErrClosed = errors.New("session: the client is closed")
	// ErrOverloaded says that this instance has too many unfinished requests. Nothing was sent; try again when some have finished.
	ErrOverloaded = errors.New("session: too many unfinished requests on this instance")
	// ErrQueueFull says that too many requests wait for the same key.
	ErrQueueFull = errors.New("session: the queue of this lock is full")
	// ErrBadKey says that the key is empty, too long, or not plain UTF-8 text.
	ErrBadKey = errors.New("session: bad key")
	// ErrHeld says that a try request met a lock that is held; the error is a *HeldError.
	ErrHeld = errors.New("session: the lock is held")
	// ErrInGrace answers a try request while a new group waits for the leases of an earlier one to end.
	ErrInGrace = errors.New("session: the group is in its grace, nothing is granted yet")
	// ErrNoLeader answers a try request when no leader has been found for two seconds.
	ErrNoLeader = errors.New("session: no leader for two seconds")
	// ErrStillHeld is CloseSession's answer while locks are held.
	ErrStillHeld = errors.New("session: locks are still held; release them before closing the session")
	// ErrRefused says that the group refused a request for a reason that has no error of its own; the text names it.
	ErrRefused = errors.New("session: the group refused the request")
)

// HeldError answers a try request that met a held lock. It is ErrHeld for errors.Is. Its fields describe the moment at which the
// request was applied.
type HeldError struct {
	Key         string
	Session     lockfsm.SessionID // who holds it
	Record      []byte            // the holder's instance record, as given to Rebind there; owned by the receiver
	Token       lockfsm.Token     // the holder's token
	SinceUnixMS int64             // the leader's wall clock at the grant, in Unix milliseconds
	Waiters     int               // how many wait behind it
}

// Error names the key and how many wait.
func (e *HeldError) Error() string {
	return fmt.Sprintf("session: %q is held with token %d, %d waiting", e.Key, e.Token, e.Waiters)
}

// Is reports whether target is ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
