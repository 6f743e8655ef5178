package lockfsm

import (
	"slices"
	"time"
)

// Code is the outcome of a command. The values are sent to other instances and never change. Zero
// is no code.
type Code uint8

const (
	// Done: the command took effect, now or earlier.
	Done Code = 1
	// Granted: the request holds the lock, with the token of the result.
	Granted Code = 2
	// Waiting: the request is in the queue and waits for the entry at Watch.
	Waiting Code = 3
	// Held: a Try found the lock taken. Holder describes the holder. If the holder is a stay, and
	// only requests with Try wait for it, a Try is Waiting instead, and ends later (Change.Held). The
	// same is true behind another Try that waits. A holder of Held has a token.
	Held Code = 4
	// Finished: the request has ended or can never begin. For an Expire with a Cause: the session is
	// gone already, and nothing changed.
	Finished Code = 5
	// Stale: the epoch is not the session's, or the term in an Expire is not that of its log entry.
	// Nothing changed.
	Stale Code = 6
	// NoSession: the session does not exist or is gone, or has another Opener or Nonce. Nothing
	// changed.
	NoSession Code = 7
	// NotBorn: the group is not founded yet. Nothing changed.
	NotBorn Code = 8
	// BadKey: the key is empty, too long, not UTF-8, or has control characters.
	BadKey Code = 9
	// QueueFull: too many requests wait for this lock (Limits.WaitersPerLock, or Most if the request
	// would wait for this lock), or a Try would wait for a request that also waits. Holder is set for
	// a Try and for several keys.
	QueueFull Code = 10
	// TooManyEntries: the session has too many requests (Limits.EntriesPerSession).
	TooManyEntries Code = 11
	// TooManySessions: the group has too many sessions (Limits.Sessions).
	TooManySessions Code = 12
	// InGrace: a Try was applied during the grace, in which a holder of an earlier group may still
	// hold the lock.
	InGrace Code = 13
	// Unsupported: the command needs a higher rules version than the group's, or the machine has
	// failed. Nothing changed.
	Unsupported Code = 14
	// Malformed: the bytes are not a command. Nothing changed.
	Malformed Code = 15
	// Deadlock: the request would wait, directly or through others, for one of its owners. See
	// Circle.
	Deadlock Code = 16
	// NotHeld: no request holds the lock with the token of the Acquire, or the request of a
	// Downgrade does not hold its keys in modes that cover the new ones, or the hold that guards a
	// Put does not exist. Nothing changed.
	NotHeld Code = 17
	// Changed: the data does not have the revision that the Put named. Data is the present data.
	Changed Code = 18
	// TooMuchData: too many keys have data (MaxData).
	TooMuchData Code = 19
	// OverSessionBudget: Limits.SessionBytes is used up.
	OverSessionBudget Code = 20
	// OverGroupBudget: Limits.GroupBytes is used up.
	OverGroupBudget Code = 21
	// Kept: the token of an Evict is one of those that a stay has reserved. An Evict with the token
	// of the stay ends it.
	Kept Code = 22
	// Downgraded: the hold has the modes of the Downgrade, now or since earlier.
	Downgraded Code = 23
	// TooEarly: the Reserve would lift the revision above the revision that a group would begin with
	// if it were founded now. It can succeed after the next Stamp. Nothing changed.
	TooEarly Code = 24
	// NotAllowed: the rights of the session do not grant lock on a key of the Acquire, or on a key of
	// the hold that it would resume.
	NotAllowed Code = 25
	// NotForced: the Acquire would resume the hold of a session that is not gone, or the Evict would
	// end a hold, and the rights do not grant read and force on each key of the hold.
	NotForced Code = 26
)

// Change is the state of one live request. If Token is not 0, the request holds all its locks
// with that token. Otherwise, the request waits. Watch is then the revision of the request
// directly ahead of it, in the queue of the first key for which it must wait. Watch 0 means that
// only the grace delays the request.
type Change struct {
	Session SessionID
	Number  Number
	Token   Token
	Watch   Revision
	// Wanted reports that the holder asked for a notice, and that another request has waited for
	// its lock since then.
	Wanted bool
	// Last is the last token that a granted stay has reserved. The first is the one after Token,
	// and no caller may use Token itself. Zero means that the request is no stay.
	Last Token
	// Asked is the place that the session of a stay must name in its answer, which is InUse. No
	// request with Try that waits for the stay has a higher place. Zero means that none waits.
	Asked Revision
	// Held is set if the request had Try and has ended as with the code Held.
	Held *Holder
	// Grant is set if the session has resumed the hold.
	Grant *Grant
}

// Holder describes the request for which another request waits.
type Holder struct {
	// Key is a key of both requests. It is only set if the waiting request has several keys.
	Key     string
	Session SessionID
	// Record is the holder's instance record. Record and Value must not be changed.
	Record []byte
	Token  Token
	// SinceUnixMS is the group's wall stamp at the grant, for display only.
	SinceUnixMS int64
	Waiters     int
	// Value was set by the holder's request.
	Value []byte
	// Kept reports that the holder is a stay, and that only its session knows whether a caller
	// holds the lock now.
	Kept bool
}

// Link is one step of a circle. Session waits for Key, and the session of the next link holds Key
// or is before Session in the queue. Record must not be changed.
type Link struct {
	Session SessionID
	Record  []byte
	Key     string
}

// Result is the outcome of one command. Its slices and Holder belong to the machine and are valid
// until the next Apply. [Result.Clone] returns a copy that stays valid.
type Result struct {
	Kind Kind
	Code Code
	// Session, Epoch and Number are those of the command. For Open, Session is the opened session.
	Session SessionID
	Epoch   Epoch
	Number  Number
	// Nonce is the nonce of an Open, Attach or Put.
	Nonce Nonce
	// Token is set with Granted. For a Reserve with Done it is the first of the taken revisions.
	Token Token
	// Last is set with Granted if the request is a stay, see [Change]. For a Reserve with Done it is
	// the last of the taken revisions.
	Last Token
	// Grant is set with Granted if the session has resumed the hold, see [Change]. It stays valid.
	Grant *Grant
	// Watch is set with Waiting, see [Change].
	Watch Revision
	// Unsearched is set with Waiting if the search for a deadlock has ended at its bound. The leader
	// must continue it with Machine.Search.
	Unsearched bool
	// TTL is, for Open, the TTL of the session. For Expire it is the further time for which locks
	// of the session stay taken, after which the leader must propose Expire again. Zero means that
	// no locks stay taken.
	TTL time.Duration
	// Holder is set with Held, with QueueFull (see there), and with Waiting. It is nil if only the
	// grace delays the request.
	Holder *Holder
	// Detached is set with Done if a hold stays after a Detach. It is the ID of the session to
	// which the hold was moved. The hold stays for TTL.
	Detached SessionID
	// Evicted describes the request that was ended by an Evict, or whose hold an Acquire has
	// resumed. With Done and an Expire with a Cause, it has only Session, Record, By, Reason and
	// Cause.
	Evicted *Eviction
	// Data is set if Code is Changed, or if Code is Done and the command is a Put. It is the present
	// data of the key, or zero. It stays valid and must not be changed.
	Data *Data
	// Circle is set with Deadlock. It has at most 64 links. The first link is the refused request.
	// If no link was left out, the key of the last link belongs to an owner of that request.
	Circle []Link
	// Budget is the exceeded budget in bytes.
	Budget uint64
	// States lists, after a successful Attach, every live request of the session in ascending order
	// of number.
	States []Change
	// Forced lists, after a successful Attach, the holds of the session that the audit log shows as
	// ended by an Evict or resumed by another session: one event for each hold, with the cause
	// Evicted or Resumed, the oldest first. It stays valid and must not be changed.
	Forced []Event
	// Fired lists other requests, of any session, that the command changed: requests that it
	// granted, requests with a new predecessor, and holders with a notice. They are in the order of
	// their places, each at most once. After them come the requests with Try that have ended. After
	// an Acquire that resumes a hold, or that is granted before others which wait, its request is also
	// listed if it gets a notice.
	Fired []Change
}

// Eviction describes a request that an Evict, or an Acquire of another session, has ended. Its
// slices must not be changed.
type Eviction struct {
	Session SessionID
	Number  Number
	Token   Token
	Key     string
	// Record is the instance record of the session. By and Reason are the Record and Value of the
	// Evict.
	Record, By, Reason []byte
	// Taker is the instance record of the session that has resumed the hold, or nil.
	Taker []byte
	// Live reports that the hold was resumed from another session that was not gone.
	Live bool
	// Cause is that of an Expire, or zero.
	Cause Cause
}

// Clone returns a copy that stays valid. The copy shares only Data with the machine, which never
// changes it, and each Grant.
func (r *Result) Clone() Result {
	c := *r
	c.States, c.Fired = slices.Clone(r.States), slices.Clone(r.Fired)
	for i := range c.Fired {
		if c.Fired[i].Held != nil {
			c.Fired[i].Held = c.Fired[i].Held.clone()
		}
	}
	if r.Holder != nil {
		c.Holder = r.Holder.clone()
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

func (h *Holder) clone() *Holder {
	c := *h
	c.Record, c.Value = copied(h.Record), copied(h.Value)
	return &c
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
	case Kept:
		return "kept"
	case TooEarly:
		return "too early"
	case Downgraded:
		return "downgraded"
	case NotAllowed:
		return "not allowed"
	case NotForced:
		return "not forced"
	}
	return "unknown code"
}
