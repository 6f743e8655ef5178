package mortise

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// Each error means one thing, and every one of them means that the caller holds nothing. Test with
// errors.Is; the text says what happened and what to do. A call whose context ended also satisfies
// errors.Is for the context's own error.
var (
	// ErrHeld says that TryLock found the lock taken. The error is a *HeldError.
	ErrHeld = errors.New("mortise: the lock is held")

	// ErrLost says that a lock ended before it was unlocked: its lease was not renewed in time, or
	// the node ended its session.
	ErrLost = client.ErrLost

	// ErrUnlocked says that a lock has ended because it was unlocked.
	ErrUnlocked = client.ErrReleased

	// ErrNotReady says that TryLock could not be decided: there has been no leader for 2 s, or the
	// group is in its grace.
	ErrNotReady = errors.New("mortise: not ready to decide")

	// ErrLeaving says that the node has begun to leave and takes no new requests.
	ErrLeaving = client.ErrLeaving

	// ErrVoteLost says that Leave has ended with a vote that no instance has taken over, although
	// some stay. The text says why. If it was the only vote of a group in memory, the locks of all
	// instances end.
	ErrVoteLost = instance.ErrVoteLost

	// ErrClosed says that the node is closed.
	ErrClosed = client.ErrClosed

	// ErrQueueFull says that as many requests as the group allows already wait for this key.
	ErrQueueFull = client.ErrQueueFull

	// ErrOverloaded says that this node has as many unfinished requests as it may have, by its own
	// limit or the group's. Try again when some have finished.
	ErrOverloaded = client.ErrOverloaded

	// ErrNoRoom says that the group, or this node, keeps as many of something as it may: data of
	// keys, detached holds, sessions of its user's own, or bytes: the text says what, and names the
	// budget that is used up (Config.MaxSessionBytes, Config.MaxGroupBytes). It passes when some
	// are taken away.
	ErrNoRoom = client.ErrNoRoom

	// ErrConflict says that the data of a key is not what it was at the revision that Put was
	// given.
	ErrConflict = errors.New("mortise: the data has been changed")

	// ErrNotHeld says that there is no hold with the token that was to be resumed.
	ErrNotHeld = client.ErrNotHeld

	// ErrBadRequest says that a Request contradicts itself or goes beyond a limit; the text names
	// the field.
	ErrBadRequest = instance.ErrBadRequest

	// ErrGuestSecret says that Config.Secret, or the certificate, grants rights on some keys only:
	// a guest is never listed and dials only.
	ErrGuestSecret = errors.New("mortise: a guest's secret cannot start an instance: use it with the commands of mortise, or derive one with -member")

	// ErrNotAllowed says that a derived secret, or a certificate of a guest, does not grant what
	// was asked for. The error is a *NotAllowedError.
	ErrNotAllowed = session.ErrNotAllowed

	// ErrBadKey says that a key is empty, longer than 512 bytes, not UTF-8, or has control
	// characters.
	ErrBadKey = client.ErrBadKey
)

// NotAllowedError says which right is missing. errors.Is reports it as ErrNotAllowed.
type NotAllowedError struct {
	Verb string // the right that is needed: read, write, lock or force; or "root", which no derived secret grants
	Key  string // the key, or a prefix followed by *; empty if the right is for no key
	For  string // the name in the capability, as mortise secret -for gave it
}

func (e *NotAllowedError) Error() string { return (*session.NotAllowedError)(e).Error() }

// Is makes errors.Is(err, ErrNotAllowed) true.
func (e *NotAllowedError) Is(target error) bool { return target == ErrNotAllowed }

// HeldError says who holds the lock that TryLock asked for, as the replicated state had it when the
// request was decided. errors.Is reports it as ErrHeld.
type HeldError struct {
	Key     string
	Holder  string            // Name of the instance that holds it; an instance that says no name is shown by its ID
	Token   Token             // of the present hold
	Since   time.Time         // when it was granted, by the leader's wall clock, for people: compare nothing with it
	Waiters int               // how many wait behind the holder
	Value   string            // Request.Value of the holder
	Labels  map[string]string // Request.Labels of the holder
	Session string            // ID of the holder's session: two lives of one instance have different ones

	namesake bool // the holder has the name of the instance that asked, and its session is none of that instance's
}

func (e *HeldError) Error() string {
	value := ""
	if e.Value != "" {
		value = fmt.Sprintf(", value %q", e.Value)
	}
	holder := plain.Text(e.Holder)
	if e.namesake {
		holder += fmt.Sprintf(" in another life (session %s, which is none of this process: it ends by itself if that life is over)", e.Session)
	}
	if e.Token == 0 {
		return fmt.Sprintf("mortise: lock %q is waited for by %s, who asked for several locks at once%s, %d waiting",
			e.Key, holder, value, e.Waiters)
	}
	return fmt.Sprintf("mortise: lock %q is held by %s since %s (token %d%s), %d waiting", e.Key, holder,
		e.Since.Format(time.RFC3339), e.Token, value, e.Waiters)
}

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// DeadlockError says that a request was refused because it would have waited for a lock under which
// it is made itself, by the steps of the circle. The others of the circle go on. Unlock what you
// hold, and begin again; or ask for all locks at once, with LockAll.
//
// Only a request whose context comes from a [Lock.Context] is known to be made under a lock, and a
// circle is found when its last request comes. One among more than 10,000 requests is not found,
// nor one through permits whose search takes more than 20,000 steps. A circle through permits of a
// semaphore is found if nothing outside of the circle can give enough back; it counts as one only
// in a group whose instances all know version 2 of the rules.
type DeadlockError struct {
	// Circle begins with the refused request. Each link waits for its key, which the next one
	// holds, or comes to first; the last one waits for a lock of the first.
	Circle []DeadlockLink

	upgrade bool // the request wants alone what it is made under, which is shared
	permits bool // it is made under permits of the key that it wants
}

// DeadlockLink is one of those who wait for each other.
type DeadlockLink struct {
	Holder string // Name of its instance
	Key    string // what it waits for
}

func (e *DeadlockError) Error() string {
	text := "mortise: deadlock"
	for i, link := range e.Circle {
		text += fmt.Sprintf("%s %s waits for %q", []string{":", ","}[min(i, 1)], plain.Text(link.Holder), link.Key)
	}
	if e.upgrade {
		text += ", under a shared lock of the same key: a shared lock cannot be upgraded; unlock it first, or take the exclusive lock from the beginning"
	}
	if e.permits {
		text += ", under permits of the same key: unlock them first, or ask for all that the work needs at once"
	}
	return text
}

// ForcedError is why a lock was lost that somebody has ended by [Node.ForceUnlock], or has taken up
// by [Request.Resume]. errors.Is reports it as ErrLost.
type ForcedError struct {
	By      string // Name of the instance on which it was called
	Reason  string // as it was given to ForceUnlock
	Resumed bool   // the hold goes on there
}

func (e *ForcedError) Error() string {
	if e.Resumed {
		return fmt.Sprintf("mortise: the lock was resumed by its token on %s", plain.Text(e.By))
	}
	return fmt.Sprintf("mortise: the lock was ended by force on %s: %s", plain.Text(e.By), plain.Text(e.Reason))
}

// Is makes errors.Is(err, ErrLost) true.
func (e *ForcedError) Is(target error) bool { return target == ErrLost }

// lossOf turns the end of a hold, as the session room says it, into an error of this package.
func lossOf(err error) error {
	if err == nil {
		return nil // before anything is allocated: it is what every Unlock asks
	}
	var forced *client.ForcedError
	if errors.As(err, &forced) {
		return &ForcedError{By: forced.By, Reason: forced.Reason}
	}
	var taken *client.TakenError
	if errors.As(err, &taken) {
		return &ForcedError{By: replica.HolderName(taken.Record, 0), Resumed: true}
	}
	return err
}

func heldError(e *client.HeldError) *HeldError {
	h := &HeldError{
		Key: e.Key, Holder: replica.HolderName(e.Record, e.Session), Token: Token(e.Token),
		Since: time.UnixMilli(e.SinceUnixMS), Waiters: e.Waiters,
		Session: fmt.Sprint(uint64(e.Session)),
	}
	h.Value, h.Labels = shown.Decode(e.Value)
	return h
}

func deadlockError(e *client.DeadlockError) *DeadlockError {
	d := &DeadlockError{}
	for _, link := range e.Circle {
		d.Circle = append(d.Circle, DeadlockLink{Holder: replica.HolderName(link.Record, link.Session), Key: link.Key})
	}
	return d
}

// ownError returns the error of this package for one that says which right is missing, and others
// as they are.
func ownError(err error) error {
	var denied *session.NotAllowedError
	if errors.As(err, &denied) {
		return (*NotAllowedError)(denied)
	}
	return err
}
