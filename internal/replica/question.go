package replica

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

// Timeouts and limits of questions.
const (
	QuestionTime = 2 * time.Second // timeout of one attempt
	WatchTime    = 2 * time.Second // time for which a watch waits for an event
	MaxPage      = 100             // number of locks or sessions in an answer

	maxEvents     = 512
	pageBudget    = 1000    // maximum number of locks or sessions visited for a page
	maxPeekQueue  = 1000    // maximum length of a queue in the answer to Peek, Walk or Holders
	maxListQueue  = 3       // maximum length of a queue in the answer to List
	QuestionRound = 1 << 63 // marks a round's number as that of a question
)

// Limits of pending questions; further ones fail with ErrBusy. A watch is one as long as it waits
// for an event. Each instance has one watch for all its callers.
func questionLimits() fair.Limits { return fair.Limits{Each: 64, Secret: 64, Derived: 96, All: 128} }
func watchLimits() fair.Limits {
	return fair.Limits{Each: 64, Secret: 2048, Derived: 3072, All: 4096}
}

// Op is the kind of a question.
type Op string

// The kinds of questions.
const (
	OpPeek     Op = "peek"
	OpList     Op = "list"
	OpCheck    Op = "check"
	OpEvict    Op = "evict"
	OpEnd      Op = "end"  // ends a session; the keeper proposes it
	OpLead     Op = "lead" // notes a move of the leadership in the audit log, and begins it
	OpPut      Op = "put"
	OpValue    Op = "value" // changes the value of a hold
	OpReserve  Op = "reserve"
	OpGet      Op = "get"
	OpWalk     Op = "walk"    // like OpList, with longer queues; used at the beginning of a watch
	OpHolders  Op = "holders" // the holders of a key that follow the position After
	OpWatch    Op = "watch"   // waits for an event, at most WatchTime
	OpEvents   Op = "events"  // like OpWatch, but waits for no event
	OpEnds     Op = "ends"
	OpSessions Op = "sessions"
	OpNames    Op = "names"   // the names of the replicas
	OpMembers  Op = "members" // a page of the sessions, as members
)

// ErrNoLead is the error of a replica that is not the leader.
var ErrNoLead = errors.New("mortise: this instance does not lead")

// ErrBusy is the error of a leader that has reached a limit of questions. The error that wraps it
// names the limit.
var ErrBusy = errors.New("mortise: the leader has too many queries at once")

// Question is a query about the state, or a request to change it.
type Question struct {
	Op         Op
	For        fair.Identity     // the user whose question it is
	Key        string            // key or key prefix; with OpLead: the name of the next leader
	Prefixes   lockfsm.Prefixes  // for a Watch and Events
	Token      uint64            // with OpPut: of the hold that guards it; zero means none
	Lock       string            // with OpPut: the key of that hold
	By, Reason string            // cause of an Evict, an End or a Lead
	Session    lockfsm.SessionID // for an End
	Asker      nodeid.ID         // with OpValue: the proved ID of the instance that asks
	Next       lockfsm.Cursor
	// Rights are, with OpEvict, those of the program that asks, and with OpValue those that the
	// connection of Asker proves. Nil means a full instance.
	Rights *capability.Capability

	// for a Watch and Events: the last position seen; for a Put: the expected revision; for Holders:
	// the position after which the list begins; for a change of a value: its number; for a Reserve:
	// the count
	After uint64
	Nonce lockfsm.Nonce // nonce of a Put
	Value []byte

	From lockfsm.SessionCursor // for Sessions and Members: the start of the page
}

// Ending returns what the keeper ends for an End. number is the number of the question.
func (q *Question) Ending(number uint64) keeper.Ending {
	return keeper.Ending{Session: q.Session, Cause: lockfsm.Revoked, By: []byte(q.By), Reason: []byte(q.Reason),
		Number: lockfsm.Number(number)}
}

// Command returns the command for the log if the question is a change. number is the number of the
// question.
func (q *Question) Command(number uint64) (c lockfsm.Command, changes bool) {
	c = lockfsm.Command{Number: lockfsm.Number(number), Key: q.Key}
	switch q.Op {
	case OpEvict:
		c.Kind, c.Token, c.Record, c.Value = lockfsm.Evict, lockfsm.Token(q.Token), []byte(q.By), []byte(q.Reason)
		if q.Rights != nil {
			c.Rights = q.Rights.Text()
		}
	case OpLead:
		c.Kind, c.Record, c.Value = lockfsm.Lead, []byte(q.By), []byte(q.Reason)
	case OpPut:
		c.Kind, c.Revision, c.Nonce, c.Value = lockfsm.Put, lockfsm.Revision(q.After), q.Nonce, q.Value
		if q.Token != 0 {
			c.Token, c.Lock = lockfsm.Token(q.Token), q.Lock
		}
	case OpValue:
		c.Kind, c.Token, c.Seq, c.Value = lockfsm.SetValue, lockfsm.Token(q.Token), q.After, q.Value
		c.Opener = lockfsm.Opener{Instance: q.Asker, Capability: q.Rights.Hash()}
	case OpReserve:
		c.Kind, c.Count = lockfsm.Reserve, uint32(q.After)
	}
	return c, c.Kind != 0
}

// answeredBy returns the kind of the command whose result answers the question. Zero means that a
// round does.
func (q *Question) answeredBy() lockfsm.Kind {
	if q.Op == OpEnd {
		return lockfsm.Expire
	}
	c, _ := q.Command(0)
	return c.Kind
}
