package replica

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Times and bounds of questions.
const (
	QuestionTime = 2 * time.Second // for one attempt
	WatchTime    = 2 * time.Second // how long a watch waits for something to happen
	PageMax      = 100             // locks or sessions in an answer

	questionsMax  = 64      // that a leader works on at a time; the others ask again
	watchersMax   = 1024    // on a leader
	eventsMax     = 512     // in one answer
	pageBudget    = 1000    // locks or sessions looked at for a page: a fraction of a millisecond
	peekQueueMax  = 1000    // requests of a queue in the answer to Peek
	listQueueMax  = 3       // and to List, of each
	QuestionRound = 1 << 63 // is set in the number of a round that stands for a question
)

// Op is what is asked.
type Op string

// The kinds of questions.
const (
	OpPeek     Op = "peek"
	OpList     Op = "list"
	OpCheck    Op = "check"
	OpEvict    Op = "evict"
	OpPut      Op = "put"
	OpGet      Op = "get"
	OpWalk     Op = "walk"    // as OpList, with more of each queue, for a watch
	OpHolders  Op = "holders" // those who hold a key, behind the place After
	OpWatch    Op = "watch"   // waits until something has happened, but not for long
	OpEnds     Op = "ends"
	OpSessions Op = "sessions"
	OpNames    Op = "names"   // how the replicas are called
	OpMembers  Op = "members" // a page of the sessions, as the members that they stand for
)

// ErrNoLead is the answer of a replica that does not lead.
var ErrNoLead = errors.New("mortise: this instance does not lead")

// ErrBusy is the answer of a leader that has too many questions already.
var ErrBusy = errors.New("mortise: too many look at the locks at once")

// Question is what a program wants to see of the state, or wants done by the leader. Questions and
// answers are JSON: they are for people, rare, and gain fields.
type Question struct {
	Op         Op
	Key        string `json:",omitempty"` // or prefix
	Token      uint64 `json:",omitempty,string"`
	By, Reason string `json:",omitempty"`
	Next       lockfsm.Cursor

	After uint64        `json:",omitempty"` // of a Watch, the position that was seen; of a Put, the revision; of Holders, the place
	Nonce lockfsm.Nonce // of a Put
	Value []byte        `json:",omitempty"`

	From lockfsm.SessionCursor // of Sessions and Members: where the page begins

	Rights string    `json:",omitempty"` // text of the capability under which it is put; empty is that of a full instance
	Asker  nodeid.ID `json:",omitzero"`  // the instance ID of the program that has put it; zero is an instance that asks for itself
}

// Time bounds one attempt to have a question answered. A watch waits, and is told that nothing has
// happened before this is over: a connection on which no answer comes in time is given up.
func (q *Question) Time() time.Duration {
	if q.Op == OpWatch {
		return WatchTime + QuestionTime
	}
	return QuestionTime
}

// Command returns what a question with that number is to the log, if it changes something.
func (q *Question) Command(number uint64) (c lockfsm.Command, changes bool) {
	c = lockfsm.Command{Number: lockfsm.Number(number), Key: q.Key}
	switch q.Op {
	case OpEvict:
		c.Kind, c.Token, c.Record, c.Value = lockfsm.Evict, lockfsm.Token(q.Token), []byte(q.by()), []byte(q.Reason)
	case OpPut:
		c.Kind, c.Revision, c.Nonce, c.Value = lockfsm.Put, lockfsm.Revision(q.After), q.Nonce, q.Value
	}
	return c, c.Kind != 0
}

// Under limits q to the rights of the program that has put it. Nil leaves it as it is.
func (q *Question) Under(rights *capability.Capability, by nodeid.ID) {
	if rights != nil {
		q.Rights, q.Asker = rights.Text(), by
	}
}

// Granted returns the capability under which q is put, nil for a full instance. It fails if that does
// not grant what q asks for, with a *session.NotAllowedError.
func (q *Question) Granted() (*capability.Capability, error) {
	rights, err := q.rights()
	if err == nil {
		err = q.Allowed(rights)
	}
	return rights, err
}

func (q *Question) rights() (*capability.Capability, error) {
	if q.Rights == "" {
		return nil, nil
	}
	c, err := capability.Parse(q.Rights)
	if err != nil {
		return nil, fmt.Errorf("mortise: a question was forwarded with rights that cannot be read: %w", err)
	}
	return c, nil
}

// Allowed reports which right q needs and c does not grant.
func (q *Question) Allowed(c *capability.Capability) error {
	if c == nil {
		return nil
	}
	lacks := func(verb, key string) error { return &session.NotAllowedError{Verb: verb, Key: key, For: c.For()} }
	switch q.Op {
	case OpPeek, OpGet, OpCheck, OpHolders:
		if !c.Sees(q.Key) {
			return lacks("read", q.Key)
		}
	case OpList, OpWalk, OpWatch:
		if !c.AllowsPrefix(capability.Read, q.Key) {
			return lacks("read", q.Key+"*")
		}
	case OpPut:
		if !c.Allows(capability.Write, q.Key) {
			return lacks("write", q.Key)
		}
	case OpEvict:
		if !c.Allows(capability.Force, q.Key) {
			return lacks("force", q.Key)
		}
		if !c.Allows(capability.Read, q.Key) {
			return lacks("read", q.Key)
		}
	case OpEnds, OpSessions, OpMembers, OpNames:
		if !c.AllowsPrefix(capability.Read, "") {
			return lacks("read", "*")
		}
	default:
		return lacks("root", "")
	}
	return nil
}

// by names what ends a hold, for the log, the audit and the holder. The ID of a program is proved, and
// of one with a derived secret the name in its capability too; what it says of itself is a claim.
func (q *Question) by() string {
	rights, err := q.rights()
	switch {
	case err != nil || q.Asker.IsZero():
		return q.By // an instance ends the hold by Node.ForceUnlock, under its own name
	case rights == nil:
		return fmt.Sprintf("%s (instance %v)", q.By, q.Asker)
	}
	return fmt.Sprintf("%s (instance %v, claims to be %q)", rights.For(), q.Asker, q.By)
}
