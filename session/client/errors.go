package client

import (
	"errors"
	"fmt"

	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/lockfsm"
)

// The root package returns these errors to its callers, so their texts begin with its name. Those
// of module locker are part of the interface of a lock.
var (
	// ErrLost means that the hold has ended although its holder has not released it.
	ErrLost = locker.ErrLost
	// ErrInJeopardy means that the lease of a hold with a grace has ended, and that the hold may be
	// good again. It is not final.
	ErrInJeopardy = locker.ErrInJeopardy
	// ErrReleased means that the caller has released the hold.
	ErrReleased = locker.ErrUnlocked
	// ErrClosed means that the client or its session is closed.
	ErrClosed = locker.ErrClosed
	// ErrOverloaded means that this instance has too many unfinished requests. The caller may try
	// again later.
	ErrOverloaded = locker.ErrOverloaded
	// ErrQueueFull means that too many requests wait for the same key.
	ErrQueueFull = locker.ErrQueueFull
	// ErrBadKey means that the key is empty, too long, or not plain UTF-8 text.
	ErrBadKey = locker.ErrBadKey
	// ErrHeld means that a try request found the lock held. The error is a *HeldError.
	ErrHeld = locker.ErrHeld
	// ErrInGrace means that a try request was applied during the group's grace.
	ErrInGrace = errors.New("mortise: the group is in its grace period and grants nothing yet")
	// ErrNoLeader means that a try request failed because no leader was found for two seconds.
	ErrNoLeader = errors.New("mortise: no leader has answered for two seconds")
	// ErrKept means that a try request waited two seconds for a session that keeps the lock, and
	// that may not hold it now. The request has caused a recall, so a later try may succeed.
	ErrKept = errors.New("mortise: it is not known whether the lock is held: the session that keeps it, or that " +
		"keeps another lock of a request before this one, has not answered for two seconds")
	// ErrLeaving means that the instance has begun to leave and accepts no new requests.
	ErrLeaving = locker.ErrLeaving
	// ErrStillHeld means that CloseSession was called while locks were held.
	ErrStillHeld = errors.New("mortise: locks are still held; release them before closing the session")
	// ErrNotHeld means that the hold to resume has ended, or has another token.
	ErrNotHeld = errors.New("mortise: the lock is not held with this token")
	// ErrNoRoom means that a limit of the group or of this instance, or a budget of bytes, is
	// reached. For a budget the error is a *BudgetError. Waiting does not help.
	ErrNoRoom = locker.ErrNoRoom
	// ErrRefused means that the group refused the request for a reason without an error value of
	// its own. The text names the reason.
	ErrRefused = errors.New("mortise: the group refused the request")

	// ErrUnsupported means that the rules of the group are older than the request, because not all
	// instances run a build that has it.
	ErrUnsupported = locker.ErrUnsupported

	// ErrUpgraded means that the hold to upgrade already has an upgrade, which waits or is held.
	ErrUpgraded = errors.New("mortise: the lock is already being upgraded, or is upgraded")
)

// OverdueError means that a hold has reached its longest duration. It matches ErrLost.
type OverdueError struct{}

func (OverdueError) Error() string {
	return "mortise: the lock was lost: it was held for as long as its request allows"
}

func (OverdueError) Is(target error) bool { return target == ErrLost }

// IdleError means that the holder did not beat for as long as its request allows. It matches
// ErrLost.
type IdleError struct{}

func (IdleError) Error() string {
	return "mortise: the lock was lost: its holder has not called Beat for as long as its request allows"
}

func (IdleError) Is(target error) bool { return target == ErrLost }

// HoldReleasedError means that an upgrade has ended because its hold was released first. It matches
// ErrLost.
type HoldReleasedError struct{}

func (HoldReleasedError) Error() string {
	return "mortise: the lock was lost: the upgradable lock that it belongs to was unlocked first"
}

func (HoldReleasedError) Is(target error) bool { return target == ErrLost }

// WaitError means that the call's context ended while it waited. Err is the context's error with
// its cause.
type WaitError struct {
	Key    string
	Behind *HeldError // the holder when the request was applied; nil if unknown
	Err    error
}

func (e *WaitError) Error() string {
	if e.Behind == nil {
		return fmt.Sprintf("mortise: waiting for %q: %v", e.Key, e.Err)
	}
	return fmt.Sprintf("mortise: waiting for %q, held with token %d: %v", e.Key, e.Behind.Token, e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }

// HeldError means that a try request found the lock held. It matches ErrHeld, unless Token is zero,
// as it can be for a request that waits. Its fields describe
// the holder when the request was applied. Calls that wait for the same stay share a HeldError.
type HeldError struct {
	Key         string
	Session     lockfsm.SessionID
	Record      []byte // what the holder's instance passed to Rebind; not to be changed
	Token       lockfsm.Token
	SinceUnixMS int64  // the leader's wall clock at the grant, in Unix milliseconds
	Waiters     int    // requests that wait for the lock
	Value       []byte // the value of the holder's request; not to be changed
	// Kept means that the holder keeps the lock as a stay. Token is then the token of the stay, unless
	// the holder has named the token of its caller.
	Kept bool
}

// DeadlockError is the error of a request that would have waited for its own owner. The first link
// of Circle is the request.
type DeadlockError struct {
	Circle []lockfsm.Link // owned by the receiver
}

func (e *DeadlockError) Error() string {
	text := "mortise: deadlock"
	for i, link := range e.Circle {
		text += fmt.Sprintf("%s session %d waits for %q", []string{":", ","}[min(i, 1)], link.Session, link.Key)
	}
	return text
}

// ForcedError means that a hold was ended by force. It matches ErrLost.
type ForcedError struct {
	By     string // the name that the caller of the forced release gave
	Reason string // the reason that this caller gave
}

func (e *ForcedError) Error() string {
	return fmt.Sprintf("mortise: the lock was ended by %s: %s", e.By, e.Reason)
}

func (e *ForcedError) Is(target error) bool { return target == ErrLost }

// TakenError means that another session has resumed the hold by its token. It matches ErrLost.
type TakenError struct {
	Record []byte // the record of the session that resumed the hold; owned by the receiver
}

func (*TakenError) Error() string {
	return "mortise: the lock was resumed by its token in another session"
}

func (*TakenError) Is(target error) bool { return target == ErrLost }

func (e *HeldError) Error() string {
	return fmt.Sprintf("mortise: %q is held with token %d, %d waiting", e.Key, e.Token, e.Waiters)
}

func (e *HeldError) Is(target error) bool { return target == ErrHeld && e.Token != 0 }

// fullQueue returns an ErrQueueFull that names the key whose queue is full.
func fullQueue(try bool, behind *HeldError) error {
	if try {
		return fmt.Errorf("%w: %q is not free, but it is not known to be held: %d other requests wait for it",
			ErrQueueFull, behind.Key, behind.Waiters)
	}
	return fmt.Errorf("%w: %d requests wait for %q", ErrQueueFull, behind.Waiters, behind.Key)
}

// errTooMany is ErrOverloaded with the limits of this client, which its kept locks have too.
var errTooMany = fmt.Errorf("%w: at most %d wait or are being given back, with at most %d MiB of keys: try again when "+
	"some have ended", ErrOverloaded, maxUnfinished, maxKeyBytes>>20)

// codeError returns the error for a code, or nil if the request must be sent again.
func codeError(code lockfsm.Code) error {
	switch code {
	case lockfsm.Finished, lockfsm.Done:
		return nil
	case lockfsm.QueueFull:
		return ErrQueueFull
	case lockfsm.BadKey:
		return ErrBadKey
	case lockfsm.TooManyEntries:
		return fmt.Errorf("%w: the group allows a session %d locks and waiting requests: release some, or use another "+
			"session", ErrOverloaded, lockfsm.DefaultLimits().EntriesPerSession)
	case lockfsm.InGrace:
		return ErrInGrace
	case lockfsm.NotHeld:
		return ErrNotHeld
	case lockfsm.Unsupported:
		return ErrUnsupported
	}
	return fmt.Errorf("%w: %v", ErrRefused, code)
}

const (
	maxUnfinished = 65_536
	maxKeyBytes   = 8 << 20
)
