package replica

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
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

// Question is what a program wants to see of the state, or wants done by the leader.
type Question struct {
	Op         Op
	Key        string // or prefix
	Token      uint64
	By, Reason string // of an Evict
	Next       lockfsm.Cursor

	After uint64        // of a Watch, the position that was seen; of a Put, the revision; of Holders, the place
	Nonce lockfsm.Nonce // of a Put
	Value []byte

	From lockfsm.SessionCursor // of Sessions and Members: where the page begins
}

// Command returns what a question with that number is to the log, if it changes something.
func (q *Question) Command(number uint64) (c lockfsm.Command, changes bool) {
	c = lockfsm.Command{Number: lockfsm.Number(number), Key: q.Key}
	switch q.Op {
	case OpEvict:
		c.Kind, c.Token, c.Record, c.Value = lockfsm.Evict, lockfsm.Token(q.Token), []byte(q.By), []byte(q.Reason)
	case OpPut:
		c.Kind, c.Revision, c.Nonce, c.Value = lockfsm.Put, lockfsm.Revision(q.After), q.Nonce, q.Value
	}
	return c, c.Kind != 0
}
