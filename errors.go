package mortise

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/session"
)

// Each error means one thing, and every one of them means that the caller holds nothing. Test with errors.Is; the text says what
// happened and what to do. A call whose context ended also satisfies errors.Is for the context's own error.
var (
	// ErrHeld says that TryLock found the lock taken. The error is a *HeldError.
	ErrHeld = errors.New("mortise: the lock is held")

	// ErrLost says that a lock ended before it was unlocked: its lease was not renewed in time, or the node ended its session.
	ErrLost = session.ErrLost

	// ErrUnlocked says that a lock has ended because it was unlocked.
	ErrUnlocked = session.ErrReleased

	// ErrNotReady says that TryLock could not be decided: there has been no leader for 2 s, or the group is in its grace.
	ErrNotReady = errors.New("mortise: not ready to decide")

	// ErrLeaving says that the node has begun to leave and takes no new requests.
	ErrLeaving = session.ErrLeaving

	// ErrClosed says that the node is closed.
	ErrClosed = session.ErrClosed

	// ErrQueueFull says that as many requests as the group allows already wait for this key.
	ErrQueueFull = session.ErrQueueFull

	// ErrOverloaded says that this node has as many unfinished requests as it may have, by its own limit or the group's. Try again
	// when some have finished.
	ErrOverloaded = session.ErrOverloaded

	// ErrBadKey says that a key is empty, longer than 512 bytes, not UTF-8, or has control characters.
	ErrBadKey = session.ErrBadKey
)

// HeldError says who holds the lock that TryLock asked for, as the replicated state had it when the request was decided. errors.Is
// reports it as ErrHeld.
type HeldError struct {
	Key     string
	Holder  string    // Name of the instance that holds it; an instance that says no name is shown by its ID
	Token   Token     // of the present hold
	Since   time.Time // when it was granted, by the leader's wall clock, for people: compare nothing with it
	Waiters int       // how many wait behind the holder
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("mortise: lock %q is held by %s since %s (token %d), %d waiting", e.Key, e.Holder, e.Since.Format(time.RFC3339), e.Token, e.Waiters)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }
