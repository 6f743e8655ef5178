package lockfsm

import (
	"slices"
	"time"
)

// Code is the outcome of a command. The values are sent to other instances: they are fixed, and new
// ones are added at the end. Zero is no code.
type Code uint8

const (
	// Done: the command took effect, now or earlier.
	Done Code = 1
	// Granted: the request holds the lock, with the token of the result.
	Granted Code = 2
	// Waiting: the request is in the queue and waits for the entry at Watch.
	Waiting Code = 3
	// Held: a Try found the lock taken. Holder names the holder.
	Held Code = 4
	// Finished: the request has ended, or can never begin. It holds nothing, and never will.
	Finished Code = 5
	// Stale: the epoch is not that of the session, or the term in an Expire is not that of its log
	// entry. Nothing changed.
	Stale Code = 6
	// NoSession: there is no such live session. Nothing changed.
	NoSession Code = 7
	// NotBorn: the group is not founded yet. Nothing changed.
	NotBorn Code = 8
	// BadKey: the key is empty, too long, not UTF-8, or has control characters.
	BadKey Code = 9
	// QueueFull: too many requests wait for this lock (Limits.WaitersPerLock or Most).
	QueueFull Code = 10
	// TooManyEntries: the session has too many requests (Limits.EntriesPerSession).
	TooManyEntries Code = 11
	// TooManySessions: the group has too many sessions (Limits.Sessions).
	TooManySessions Code = 12
	// InGrace: a Try was applied during the grace, when it is unknown whether the lock is free.
	InGrace Code = 13
	// Unsupported: the command needs a higher rules version than the group's, or the machine has
	// failed. Nothing changed.
	Unsupported Code = 14
	// Malformed: the bytes are no command. Nothing changed.
	Malformed Code = 15
	// Deadlock: the request would wait, directly or through other requests, for the end of its own
	// owner. See Circle.
	Deadlock Code = 16
	// NotHeld: no request holds the lock with the token to resume.
	NotHeld Code = 17
	// Changed: the data is not at the revision that the Put named. Data is the present data.
	Changed Code = 18
	// TooMuchData: too many keys have data (MaxData).
	TooMuchData Code = 19
	// OverSessionBudget: Limits.SessionBytes is used up.
	OverSessionBudget Code = 20
	// OverGroupBudget: Limits.GroupBytes is used up.
	OverGroupBudget Code = 21
)

// Change is the state of one live request. If Token is not 0, the request holds all its locks with
// that token. Otherwise it waits, and Watch is the revision of its predecessor in the first queue,
// by key, in which it must wait. Watch 0 then means that only the grace keeps it waiting.
type Change struct {
	Session SessionID
	Number  Number
	Token   Token
	Watch   Revision
	// Wanted reports that the request holds its lock and has asked for a notice, and that another
	// request has waited for the lock since then.
	Wanted bool
}

// Holder describes the request that keeps another request from being granted.
type Holder struct {
	// Key is the key that both requests name. It is set if the other request asks for several keys.
	Key     string
	Session SessionID
	// Record is the holder's instance record. It must not be changed.
	Record []byte
	Token  Token
	// SinceUnixMS is the group's wall stamp at the grant. It is for display; no decision may depend
	// on it.
	SinceUnixMS int64
	// Waiters is how many requests wait for the lock.
	Waiters int
	// Value is the Value of the holder's request. It must not be changed.
	Value []byte
}

// Link is one step of a circle: Session waits for Key, and the session of the next link holds Key
// or is before Session in the queue.
type Link struct {
	Session SessionID
	// Record is the session's instance record. It must not be changed.
	Record []byte
	Key    string
}

// Result is the outcome of one command. Its slices and Holder belong to the machine and are valid
// until the next Apply; [Result.Clone] returns a copy that stays valid.
type Result struct {
	Kind Kind
	Code Code
	// Session, Epoch and Number are those of the command. For Open, Session is the ID of the opened
	// session.
	Session SessionID
	Epoch   Epoch
	Number  Number
	// Nonce is the nonce of an Open, Attach or Put.
	Nonce Nonce
	// Token is set with Granted.
	Token Token
	// Watch is set with Waiting, see [Change].
	Watch Revision
	// TTL is, for Open, the TTL of the session: the TTL that the command asked for, but at most the
	// group's TTL. For Expire it is the further time for which locks of the session stay taken.
	// After that time Expire must be proposed again. Zero means that no locks of the session stay
	// taken.
	TTL time.Duration
	// Holder is set with Held, and with Waiting unless only the grace keeps the request waiting.
	Holder *Holder
	// Detached is set with Done if the hold stays after a Detach. It is the session that now has
	// the hold. That session is gone, as after Expire, and has the hold for TTL.
	Detached SessionID
	// Evicted is set with the Done of an Evict, and with the Granted of an Acquire that resumes a
	// hold. It describes the request that was ended.
	Evicted *Eviction
	// Data is set with the Done of a Put, and with Changed. It is the present data of the key, or
	// zero if there is none. It stays valid and must not be changed.
	Data *Data
	// Circle is set with Deadlock. Its first link is the refused request. The key of its last link
	// belongs to an owner of that request. A circle of more than 64 links is cut off at its end.
	Circle []Link
	// Budget is set with OverSessionBudget and OverGroupBudget: the budget in bytes.
	Budget uint64
	// States lists, after an Attach that took effect, every live request of the session in
	// ascending order of number. A number that the Attach named and that is not in States is
	// finished.
	States []Change
	// Fired lists the other requests, of any session, whose state the command changed: the requests
	// now granted, those with a new predecessor, and holders with a notice. They are in the order
	// of their places, each at most once. The result of an Acquire that resumes a hold also lists
	// the resumed request if it gets a notice.
	Fired []Change
}

// Eviction describes a request that an Evict, or an Acquire of another session, has ended.
type Eviction struct {
	Session SessionID
	Number  Number
	Token   Token
	Key     string // the key of the command
	// Record is the instance record of the session. By and Reason are the Record and Value of the
	// Evict. They must not be changed.
	Record, By, Reason []byte
	// Taker is the instance record of the session that has resumed the hold, if any. It must not be
	// changed.
	Taker []byte
}

// Clone returns a copy that stays valid. It shares only Data with the machine, which never changes
// it.
func (r *Result) Clone() Result {
	c := *r
	c.States, c.Fired = slices.Clone(r.States), slices.Clone(r.Fired)
	if r.Holder != nil {
		h := *r.Holder
		h.Record, h.Value = copied(h.Record), copied(h.Value)
		c.Holder = &h
	}
	if r.Evicted != nil {
		e := *r.Evicted
		e.Record, e.By, e.Reason, e.Taker = copied(e.Record), copied(e.By), copied(e.Reason), copied(e.Taker)
		c.Evicted = &e
	}
	c.Circle = slices.Clone(r.Circle)
	for i := range c.Circle {
		c.Circle[i].Record = copied(c.Circle[i].Record)
	}
	return c
}

// String returns the code's name in lower case.
func (c Code) String() string {
	switch c {
	case Done:
		return "done"
	case Granted:
		return "granted"
	case Waiting:
		return "waiting"
	case Held:
		return "held"
	case Finished:
		return "finished"
	case Stale:
		return "stale"
	case NoSession:
		return "no session"
	case NotBorn:
		return "not born"
	case BadKey:
		return "bad key"
	case QueueFull:
		return "queue full"
	case TooManyEntries:
		return "too many entries"
	case TooManySessions:
		return "too many sessions"
	case InGrace:
		return "in grace"
	case Unsupported:
		return "unsupported"
	case Malformed:
		return "malformed"
	case Deadlock:
		return "deadlock"
	case NotHeld:
		return "not held"
	case Changed:
		return "changed"
	case TooMuchData:
		return "too much data"
	case OverSessionBudget:
		return "over the session's budget"
	case OverGroupBudget:
		return "over the group's budget"
	}
	return "unknown code"
}
