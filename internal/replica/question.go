package replica

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Timeouts and limits of questions.
const (
	QuestionTime = 2 * time.Second // for one attempt
	WatchTime    = 2 * time.Second // how long a watch waits for an event
	MaxPage      = 100             // locks or sessions in an answer

	maxQuestions  = 64      // on a leader at a time; others fail with ErrBusy
	maxWatchers   = 1024    // on a leader at a time
	maxEvents     = 512     // in one answer
	pageBudget    = 1000    // locks or sessions visited for a page: a fraction of a millisecond
	maxPeekQueue  = 1000    // requests of a queue in an answer to Peek
	maxListQueue  = 3       // requests of each queue in an answer to List
	QuestionRound = 1 << 63 // set in the number of a round that belongs to a question
)

// Op is the kind of a question.
type Op string

// The kinds of questions.
const (
	OpPeek     Op = "peek"
	OpList     Op = "list"
	OpCheck    Op = "check"
	OpEvict    Op = "evict"
	OpPut      Op = "put"
	OpGet      Op = "get"
	OpWalk     Op = "walk"    // like OpList, with more of each queue, for a watch
	OpHolders  Op = "holders" // the holders of a key behind the place After
	OpWatch    Op = "watch"   // waits a short time for an event
	OpEnds     Op = "ends"
	OpSessions Op = "sessions"
	OpNames    Op = "names"   // the names of the replicas
	OpMembers  Op = "members" // a page of the sessions, as members
)

// ErrNoLead is the error of a replica that does not lead.
var ErrNoLead = errors.New("mortise: this instance does not lead")

// ErrBusy is the error of a leader that already has too many questions.
var ErrBusy = errors.New("mortise: the leader has too many queries at once; try again")

// Question is a query for the state, or a requested change.
type Question struct {
	Op         Op
	Key        string // or prefix
	Token      uint64
	By, Reason string // of an Evict
	Next       lockfsm.Cursor

	After uint64        // of a Watch, the last position seen; of a Put, the revision; of Holders, the place
	Nonce lockfsm.Nonce // of a Put
	Value []byte

	From lockfsm.SessionCursor // of Sessions and Members: the start of the page
}

// Command returns the command for the log of a question with that number, if it changes something.
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
