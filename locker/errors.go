package locker

import "errors"

// After each of these errors but ErrInJeopardy the caller holds no lock. Test for them with
// errors.Is: most errors wrap them, with the key and the reason. Package mortise has types with
// more, for example *mortise.HeldError, and each of them is one of these errors.
var (
	// ErrHeld means that another caller had the lock, so that a request that does not wait was
	// refused.
	ErrHeld = errors.New("mortise: the lock is held")

	// ErrLost means that a lock ended before it was unlocked. Another caller may hold it.
	ErrLost = errors.New("mortise: the lock was lost")

	// ErrInJeopardy means that a lock is in doubt, and may be good again. Act as if it were lost.
	// The lock is still to be unlocked. It is an error only of locks that were acquired with a
	// grace.
	ErrInJeopardy = errors.New("mortise: the lock is in doubt: its lease was not renewed in time, " +
		"and the group has not yet said whether it is still held")

	// ErrUnlocked means that a lock has ended because it was unlocked.
	ErrUnlocked = errors.New("mortise: the lock was released")

	// ErrDeadlock means that the request would have waited, directly or through others, for a lock
	// under which it is made. Unlock that lock and begin again.
	ErrDeadlock = errors.New("mortise: deadlock")

	// ErrNotReady means that the lock service cannot decide now. A later call may succeed.
	ErrNotReady = errors.New("mortise: the group cannot answer now")

	// ErrUnsupported means that the lock service is older than the request. It fails until the
	// service is updated.
	ErrUnsupported = errors.New("mortise: not all instances run a build that supports this request")

	// ErrOverloaded means that this caller has too many unfinished requests. Try again when some
	// have finished.
	ErrOverloaded = errors.New("mortise: too many unfinished requests on this instance")

	// ErrQueueFull means that too many requests wait for the lock.
	ErrQueueFull = errors.New("mortise: the queue of this lock is full")

	// ErrNoRoom means that the lock service has reached another of its limits.
	ErrNoRoom = errors.New("mortise: a limit of the group or of this instance is reached")

	// ErrLeaving means that the Locker is about to be closed and accepts no new requests.
	ErrLeaving = errors.New("mortise: the node is leaving")

	// ErrClosed means that the Locker is closed.
	ErrClosed = errors.New("mortise: the node is closed")

	// ErrNotAllowed means that the caller has no right to this lock.
	ErrNotAllowed = errors.New("mortise: not allowed")

	// ErrBadRequest means that a request contradicts itself or exceeds a limit; the text names the
	// field.
	ErrBadRequest = errors.New("mortise: bad request")

	// ErrBadKey means that a key is empty, longer than 512 bytes, not UTF-8, or has control
	// characters.
	ErrBadKey = errors.New("mortise: bad key")
)
