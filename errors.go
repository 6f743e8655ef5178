package mortise

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/instance"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/shown"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/session"
	"github.com/mortise-lock/mortise/session/client"
)

// After each of these errors but ErrInJeopardy the caller holds no lock. Test for them with
// errors.Is. If the context of a call ended, errors.Is also reports the context's own error.
var (
	// ErrHeld means that another caller had the lock, so that TryLock, or a request with Request.Try,
	// was refused. The error is a *HeldError.
	ErrHeld = client.ErrHeld

	// ErrLost means that a lock ended before it was unlocked: its lease was not renewed in time, or
	// the node ended its session.
	ErrLost = client.ErrLost

	// ErrInJeopardy means that a lock with Request.JeopardyGrace is in doubt: its lease was not
	// renewed in time, and the group has not yet confirmed or ended the hold. Act as if the lock
	// were lost, and wait with Lock.Regain. The lock is still to be unlocked.
	ErrInJeopardy = client.ErrInJeopardy

	// ErrUnlocked means that a lock has ended because it was unlocked.
	ErrUnlocked = client.ErrReleased

	// ErrNotReady means that the group cannot decide a request with Try now: it changed nothing, and
	// shows nothing about the lock. A later call can succeed. There has been no leader for 2 s, the
	// group is in its grace, or the session that keeps the lock (Node.LockSticky) has not answered for
	// 2 s. From TransferLead it means that the voter cannot take the lead now. The text has the
	// reason.
	ErrNotReady = locker.ErrNotReady

	// ErrUnsupported means that not all instances run a build that has what the call asks for. It
	// changed nothing, and fails until all of them run such a build.
	ErrUnsupported = client.ErrUnsupported

	// ErrLeaving means that the node has begun to leave and accepts no new requests.
	ErrLeaving = client.ErrLeaving

	// ErrVoteLost means that a node left, and none of the remaining instances has taken over its
	// vote. The text gives the reason. If the node had the only vote of a group in memory, the
	// locks of all instances end.
	ErrVoteLost = instance.ErrVoteLost

	// ErrClosed means that the node is closed.
	ErrClosed = client.ErrClosed

	// ErrQueueFull means that the queue of a key is full, by the group's limit, by
	// Request.MaxWaiting or by Config.MaxWaiting. With Request.Try it means that no request is known
	// to hold the lock, but other requests wait for it.
	ErrQueueFull = client.ErrQueueFull

	// ErrOverloaded means that this node has too many unfinished requests, by its own limit or the
	// group's. Try again when some have finished.
	ErrOverloaded = client.ErrOverloaded

	// ErrNoRoom means that the group or this node has reached a limit for data of keys, detached
	// holds, sessions of NewSession, or bytes (Config.MaxSessionBytes, Config.MaxGroupBytes). A
	// later call can succeed when some of these are removed. The text names the limit.
	ErrNoRoom = client.ErrNoRoom

	// ErrConflict means that the data of a key has changed since the revision given to Put.
	ErrConflict = errors.New("mortise: the data has been changed")

	// ErrKept means that an instance keeps the lock (Node.LockSticky) and has reserved the token given
	// to Check or ForceUnlock for its callers. Only that instance knows whether a caller holds the
	// lock with the token. The text names the instance, and the token of the kept lock.
	ErrKept = replica.ErrKept

	// ErrNotHeld means that no hold has the token given to Resume.
	ErrNotHeld = client.ErrNotHeld

	// ErrBadRequest means that a Request contradicts itself or exceeds a limit, or that no answer to
	// a query is possible, for example because a prefix or a token is too large; the text names it.
	ErrBadRequest = queries.ErrBadRequest

	// ErrNotAllowed means that a derived secret, or a guest's certificate, does not grant a right
	// that the request needs. The error is a *NotAllowedError.
	ErrNotAllowed = session.ErrNotAllowed

	// ErrBadKey means that a key is empty, longer than 512 bytes, not UTF-8, or has control
	// characters.
	ErrBadKey = client.ErrBadKey
)

// NotAllowedError names the right that is missing. errors.Is reports it as ErrNotAllowed.
type NotAllowedError struct {
	Verb string // the missing right: read, write, lock, force, or "root", which no derived secret grants
	// Key is the key, or a prefix followed by *. It is empty if the right is for no key. It is also
	// empty if the right is missing on one of the keys of a hold, which the error does not name.
	Key string
	For string // the name in the capability, as given to mortise secret -for
}

func (e *NotAllowedError) Error() string { return (*session.NotAllowedError)(e).Error() }

func (e *NotAllowedError) Is(target error) bool { return target == ErrNotAllowed }

// HeldError describes the holder of a lock at the moment when the group decided the request.
// errors.Is reports it as ErrHeld, unless Token is zero: then no request held the lock, and Holder
// waited for it together with other locks. A Try never fails with such a HeldError.
type HeldError struct {
	Key     string // the key of the request that is held
	Hold           // if Kept, Token is that of the caller on that instance if Holder has reported one
	Waiters int    // requests that wait for the lock

	namesake bool // the holder has the name of this instance, but is another incarnation
}

func (e *HeldError) Error() string {
	value := ""
	if e.Value != "" {
		value = fmt.Sprintf(", value %q", e.Value)
	}
	holder := plain.Text(e.Holder)
	if e.namesake {
		holder += fmt.Sprintf(" in another incarnation (session %s does not belong to this process; it ends by itself "+
			"if that incarnation is over)", e.Session)
	}
	if e.Token == 0 {
		return fmt.Sprintf("mortise: lock %q is not held, but %s waits for it together with other locks%s, %d waiting",
			e.Key, holder, value, e.Waiters)
	}
	since := ""
	if !e.Since.IsZero() {
		since = " since " + e.Since.Format(time.RFC3339)
	}
	return fmt.Sprintf("mortise: lock %q is %s by %s%s (token %d%s), %d waiting", e.Key, e.is(), holder, since, e.Token,
		value, e.Waiters)
}

func (e *HeldError) is() string {
	if e.Kept {
		return "kept"
	}
	return "held"
}

func (e *HeldError) Is(target error) bool { return target == ErrHeld && e.Token != 0 }

// DeadlockError reports that a request was refused, because it would have closed a circle of waits:
// directly or through other requests, it would have waited for a lock under which it is made. The
// other requests of the circle keep waiting. Unlock the locks that you hold and begin again, or
// request all of them with one LockAll.
//
// A request that arrives searches up to 288 entries of queues for a circle. Beyond them it waits,
// Standing.Unsearched in [KeyInfo] is set, and the leader searches on, in about a tenth of a
// processor: two requests that deadlock behind 10,000 others get the error within a second if few
// such searches wait. The leader finds no circle behind more than 32,768 entries or of more than
// 200 places in queues. Three limits that are nested ([Node.DoNested]) need no search, however many
// requests wait, because no request in the queue of the last limit has another one under it.
//
// A circle that includes a wait for permits is a deadlock only if no hold outside of the circle can
// release enough permits. [Lock.Upgrade] is made under its lock and under the locks of its context.
// With another context than that of a lock taken under the upgradable one, this lock counts as one
// that another goroutine may unlock: a search that took it for held would refuse upgrades that only
// seem to cross.
type DeadlockError struct {
	// Circle begins with the refused request. Each request waits for the Key of its link. The next
	// request holds that key or is ahead in its queue. The last request waits for a lock under
	// which the first is made.
	Circle []DeadlockLink

	upgrade    bool // the request is made under a shared lock of the same key
	permits    bool // the request is made under permits of the same key
	upgradable bool // the request is made under an upgradable lock of the same key
}

// DeadlockLink is one request of a deadlock.
type DeadlockLink struct {
	Holder string // Name of the instance that made the request
	Key    string // the key that the request waits for
}

func (e *DeadlockError) Error() string {
	text := "mortise: deadlock"
	for i, link := range e.Circle {
		text += fmt.Sprintf("%s %s waits for %q", []string{":", ","}[min(i, 1)], plain.Text(link.Holder), link.Key)
	}
	if e.upgrade {
		text += ", under a shared lock of the same key: " +
			"a shared lock cannot be upgraded; unlock it first, or take the exclusive lock from the beginning"
	}
	if e.upgradable {
		text += ", under an upgradable lock of the same key: call Lock.Upgrade"
	}
	if e.permits {
		text += ", under permits of the same key: unlock them first, or ask for all permits at once"
	}
	return text
}

func (e *DeadlockError) Is(target error) bool { return target == locker.ErrDeadlock }

// ForcedError reports that a lock was ended by [Node.ForceUnlock], or taken over by
// [Node.Resume]. errors.Is reports it as ErrLost.
type ForcedError struct {
	By      string // Name of the instance, or of the admin client, that ended or resumed the lock
	Reason  string // as given to ForceUnlock
	Resumed bool   // the hold continues; its new holder is named in By
}

func (e *ForcedError) Error() string {
	if e.Resumed {
		return fmt.Sprintf("mortise: the lock was resumed by its token on %s", plain.Text(e.By))
	}
	return fmt.Sprintf("mortise: the lock was ended by force on %s: %s", plain.Text(e.By), plain.Text(e.Reason))
}

func (e *ForcedError) Is(target error) bool { return target == ErrLost }

func lossOf(err error) error {
	if err == nil {
		return nil // the common case, in which Unlock must not allocate
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
		Key: e.Key, Hold: Hold{Holder: replica.HolderName(e.Record, e.Session), Token: Token(e.Token),
			Session: fmt.Sprint(uint64(e.Session)), Kept: e.Kept},
		Waiters: e.Waiters,
	}
	if e.SinceUnixMS != 0 { // unknown if another caller of this instance holds a kept lock
		h.Since = time.UnixMilli(e.SinceUnixMS)
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

func ownError(err error) error {
	var denied *session.NotAllowedError
	if errors.As(err, &denied) {
		return (*NotAllowedError)(denied)
	}
	return err
}
