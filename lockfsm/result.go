package lockfsm

import (
	"slices"
	"time"
)

// Code says what became of a command. The values travel to other instances: they are fixed for
// ever, and new ones are added at the end. Zero is no code.
type Code uint8

const (
	// Done: the command took effect, now or earlier.
	Done Code = 1
	// Granted: the request holds the lock, with the token of the result.
	Granted Code = 2
	// Waiting: the request stands in the queue and watches what the result names.
	Waiting Code = 3
	// Held: a Try found the lock taken. The result says by whom.
	Held Code = 4
	// Finished: the request is over, or can never begin. It holds nothing and never will.
	Finished Code = 5
	// Stale: the epoch is not the session's, or for Expire the term is not the entry's. Nothing
	// changed.
	Stale Code = 6
	// NoSession: no such session lives. Nothing changed.
	NoSession Code = 7
	// NotBorn: the group is not founded yet. Nothing changed.
	NotBorn Code = 8
	// BadKey: the key is empty, too long, not UTF-8, or has control characters.
	BadKey Code = 9
	// QueueFull: too many wait for this lock (Limits.WaitersPerLock).
	QueueFull Code = 10
	// TooManyEntries: the session has too many requests (Limits.EntriesPerSession).
	TooManyEntries Code = 11
	// TooManySessions: the group has too many sessions (Limits.Sessions).
	TooManySessions Code = 12
	// InGrace: a Try came before the end of the grace, when it cannot be known whether the lock is
	// free.
	InGrace Code = 13
	// Unsupported: the command needs a higher rules version than the group's, or the machine has
	// failed. Nothing changed.
	Unsupported Code = 14
	// Malformed: the bytes are no command. Nothing changed.
	Malformed Code = 15
	// Deadlock: the request would wait for a lock of its own owner, or for somebody who waits for
	// one. The result has the circle.
	Deadlock Code = 16
	// NotHeld: nobody holds the lock with the token that was to be taken up.
	NotHeld Code = 17
	// Changed: the data is not what it was at the revision of the Put. Data of the result is what
	// it is.
	Changed Code = 18
	// TooMuchData: too many keys have data (MaxData).
	TooMuchData Code = 19
	// OverSessionBudget: the session's budget of bytes is used up (Limits.SessionBytes). Budget of
	// the result is that budget.
	OverSessionBudget Code = 20
	// OverGroupBudget: the group's budget of bytes is used up (Limits.GroupBytes). Budget of the
	// result is that budget.
	OverGroupBudget Code = 21
)

// Change is the state of one live request. Token != 0: it holds its lock with that token, or all
// its locks. Otherwise it waits, and Watch is the revision of the entry directly before it in the
// queue, of several queues the first by key in which it must wait; Watch 0 means that only the
// grace keeps it waiting.
type Change struct {
	Session SessionID
	Number  Number
	Token   Token
	Watch   Revision
	// Wanted: it holds its lock, has asked for a word when somebody waits for it, and somebody does
	// or did since.
	Wanted bool
}

// Holder says who stands in the way of a request.
type Holder struct {
	// Key is the lock in question, if the request asks for several.
	Key     string
	Session SessionID
	// Record is the holder's instance record. Read only.
	Record []byte
	Token  Token
	// SinceUnixMS is the group's wall stamp at the grant. For people; nothing may be decided by it.
	SinceUnixMS int64
	// Waiters is the number of requests that wait for the lock.
	Waiters int
	// Value is the holder's. Read only.
	Value []byte
}

// Link is one step of a circle: the session's owner waits for Key, which is the next one's, or
// comes to him first.
type Link struct {
	Session SessionID
	// Record is the session's instance record. Read only.
	Record []byte
	Key    string
}

// Result is what became of one command. Its slices and Holder belong to the machine and are valid
// until the next Apply; whoever needs them longer copies them.
type Result struct {
	Kind Kind
	Code Code
	// Session, Epoch and Number are the command's. For Open, Session is the session that now
	// exists.
	Session SessionID
	Epoch   Epoch
	Number  Number
	// Nonce is the command's, for Open, Attach and Put.
	Nonce Nonce
	// Token is set with Granted.
	Token Token
	// Watch is set with Waiting, see [Change].
	Watch Revision
	// TTL is the session's, for Open: what was asked for, at most the group's. For Expire it is for
	// how long locks of the session stay taken, 0 for none: then Expire is due once more.
	TTL time.Duration
	// Holder is set with Held, and with Waiting unless only the grace keeps the lock from being
	// held: so that whoever gives up can say who was in the way.
	Holder *Holder
	// Detached is set with the Done of a Detach that leaves something behind: the session in which
	// it is, gone as after Expire, for TTL.
	Detached SessionID
	// Evicted is set with the Done of an Evict, and when an Acquire takes a hold up: whose request
	// is over without his doing.
	Evicted *Eviction
	// Data is set with the Done of a Put and with Changed: what the key has now, zero if it has
	// none. Read only; it stays valid.
	Data *Data
	// Circle is set with Deadlock: it begins with the request and its key, and the owner of the
	// last link's key is the request's own. Of a long one only the beginning is told.
	Circle []Link
	// Budget is set with OverSessionBudget and OverGroupBudget: the budget in bytes.
	Budget uint64
	// States lists every live request of the session after an Attach that took effect, in ascending
	// order of number. What the command named and States does not is finished.
	States []Change
	// Fired lists the requests of any session whose state the command changed besides its own:
	// those now granted, and those that wait behind another entry than before. Ascending by place
	// of their entries in the order of arrival; each at most once.
	Fired []Change
}

// Eviction says which request was ended by others, on whose word, and why.
type Eviction struct {
	Session SessionID
	Number  Number
	Token   Token
	Key     string // the command's
	// Record is the instance record of the session. By and Reason are the Record and Value of the
	// Evict. Read only.
	Record, By, Reason []byte
	// Taker is the instance record of the session that has taken the hold up, if that is how it
	// ended. Read only.
	Taker []byte
}

// Clone returns a copy that lasts: it shares nothing with the machine.
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
