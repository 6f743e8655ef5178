package replica

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// Questions holds the pending questions of a leader. The goroutine that owns the state answers a
// question after a majority has confirmed in a round that this replica is the leader. So an answer
// is never older than its question. Any goroutine may call Ask, Drop, Idle and Watching. Only the
// Core calls the other methods.
type Questions struct {
	leader  uint64
	asking  *fair.Places // pending questions that wait for no event
	waiters *fair.Places // watches

	mu      sync.Mutex        // never held across a wait
	last    uint64            // number of the last question, below QuestionRound; see CoreConfig.Questions
	waiting map[uint64]*Asked // by the number of the round or of the command

	watching atomic.Int64
	watchers []*Asked // watches that wait for an event; owned by the log's owner goroutine
}

// NewQuestions returns the Questions of the replica with the given raft ID. Their numbers begin at
// a quarter of first.
func NewQuestions(raft, first uint64) *Questions {
	return &Questions{leader: raft, last: first >> 2, asking: fair.New(questionLimits()), waiters: fair.New(watchLimits())}
}

// Asked is a pending question. Its asker waits for Done.
type Asked struct {
	Number uint64 // number of its command, or of its round without the bit QuestionRound

	question Question
	// a waiting Watch has no event up to this position; 0 until the Watch waits
	watched atomic.Uint64
	left    atomic.Bool
	dropped sync.Once
	done    chan struct{}
	answer  Answer
	err     error
}

// Done returns a channel that is closed when there is an answer.
func (a *Asked) Done() <-chan struct{} { return a.done }

// Answer returns the answer. It may be called only after Done is closed.
func (a *Asked) Answer() (*Answer, error) { return &a.answer, a.err }

// Ask accepts a question, or fails with ErrBusy if there are too many. After Ask the caller must
// start the round or the command of the question, and finally call Drop.
func (s *Questions) Ask(q Question) (*Asked, error) {
	if err := s.placesOf(&q).Take(q.For, 1); err != nil {
		if q.Op == OpWatch {
			return nil, fmt.Errorf("%w: watches have reached %w; events come late until there are fewer", ErrBusy, err)
		}
		return nil, fmt.Errorf("%w: queries have reached %w; send fewer at once", ErrBusy, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = map[uint64]*Asked{}
	}
	s.last++
	one := &Asked{Number: s.last, question: q, done: make(chan struct{})}
	s.waiting[s.last] = one
	return one, nil
}

// placesOf returns the places of which a question takes one. Watches have separate ones, because
// they wait long, and after an event all of them are asked again.
func (s *Questions) placesOf(q *Question) *fair.Places {
	if q.Op == OpWatch {
		return s.waiters
	}
	return s.asking
}

// Drop removes a question, and gives its place back. The asker must call it when it stops waiting.
func (s *Questions) Drop(a *Asked) {
	a.left.Store(true)
	s.mu.Lock()
	delete(s.waiting, a.Number)
	s.mu.Unlock()
	a.dropped.Do(func() { s.placesOf(&a.question).Give(a.question.For, 1) })
}

// Idle ends the wait of a Watch that has no event. The answer contains the position up to which
// there is no event. Idle fails with ErrBusy if the round of the Watch is not confirmed yet.
func (s *Questions) Idle(a *Asked) (*Answer, error) {
	a.left.Store(true)
	position := a.watched.Load()
	if position == 0 {
		return nil, ErrBusy
	}
	return &Answer{Position: position, Leader: s.leader}, nil
}

// Watching returns the number of watches that wait for an event.
func (s *Questions) Watching() int { return int(s.watching.Load()) }

// remove removes and returns a question that a result of this kind answers, or a round if the kind
// is zero. So only one goroutine answers it. It returns nil after Drop.
func (s *Questions) remove(number uint64, by lockfsm.Kind) *Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.waiting[number]
	if one == nil || one.question.answeredBy() != by {
		return nil
	}
	delete(s.waiting, number)
	return one
}

func (s *Questions) end() {
	s.mu.Lock()
	all := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, one := range all {
		one.finish(ErrNoLead)
	}
	for _, one := range s.watchers {
		one.finish(ErrNoLead)
	}
	s.keep(nil)
}

func (a *Asked) finish(err error) {
	a.err = err
	close(a.done)
}

func (s *Questions) keep(watchers []*Asked) {
	s.watchers = watchers
	s.watching.Store(int64(len(watchers)))
}

func (s *Questions) answer(number uint64, m *lockfsm.Machine) {
	one := s.remove(number, 0)
	if one == nil {
		return
	}
	switch q, a := &one.question, &one.answer; q.Op {
	case OpPeek:
		if l, ok := m.Inspect(q.Key, maxPeekQueue); ok {
			a.Locks = append(a.Locks, l)
		}
	case OpList:
		a.Locks, a.Next, a.More = m.Walk(q.Next, q.Key, MaxPage, maxListQueue, pageBudget)
	case OpCheck:
		a.Held, one.err = m.Holds(q.Key, lockfsm.Token(q.Token)), keptError(m, q)
	case OpGet:
		if l, ok := m.Inspect(q.Key, 0); ok {
			a.Data = &l.Data
		}
	case OpSessions, OpMembers:
		a.Sessions, a.From, a.More = m.WalkSessions(q.From, MaxPage, pageBudget)
	case OpNames:
	case OpEnds:
		a.Events = m.Ends()
	case OpWalk:
		a.Locks, a.Next, a.More = m.Walk(q.Next, q.Key, MaxPage, maxPeekQueue, pageBudget)
		a.Leader, a.Position = s.leader, m.Position()
	case OpHolders:
		if l, ok := m.Holders(q.Key, lockfsm.Revision(q.After), maxPeekQueue); ok {
			a.Locks = append(a.Locks, l)
		}
		a.Leader, a.Position = s.leader, m.Position()
	case OpWatch, OpEvents:
		if !s.tell(one, m) && q.Op == OpWatch {
			one.seen()
			s.keep(append(s.watchers, one))
			return
		}
	default:
		one.err = fmt.Errorf("mortise: unknown question %q", q.Op)
	}
	close(one.done)
}

// changed answers the question of an Evict, an End, a Lead, a Put, a SetValue or a Reserve with the
// result of the command. A command of an earlier term has no question.
func (s *Questions) changed(result *lockfsm.Result, m *lockfsm.Machine) {
	one := s.remove(uint64(result.Number), result.Kind)
	if one == nil {
		return
	}
	a := &one.answer
	a.Data, a.Code, a.Budget, a.First = result.Data, result.Code, result.Budget, uint64(result.Token)
	code := result.Code
	if code == lockfsm.NoSession && one.question.Op == OpEnd {
		code = lockfsm.Finished // there is no such session any more
	}
	switch code {
	case lockfsm.Changed, lockfsm.TooMuchData, lockfsm.BadKey, lockfsm.OverGroupBudget,
		lockfsm.OverSessionBudget, lockfsm.NotHeld:
	case lockfsm.Done, lockfsm.Finished:
		a.Held = result.Code == lockfsm.Done
	case lockfsm.NotForced:
		one.err = &session.NotAllowedError{Verb: "force", For: one.question.Rights.For()}
	case lockfsm.Kept:
		one.err = keptError(m, &one.question)
	default:
		if result.Code == lockfsm.Unsupported && one.question.Op != OpEvict { // its askers expect no such code
			break
		}
		one.err = fmt.Errorf("mortise: the group refused the change: %v", result.Code)
	}
	close(one.done)
}

func (s *Questions) tell(one *Asked, m *lockfsm.Machine) bool {
	q, a := &one.question, &one.answer
	events, upTo, known := m.Since(q.After, q.Prefixes, maxEvents)
	a.Events, a.Position, a.Missed, a.Leader, a.More = events, upTo, !known, s.leader, upTo != m.Position()
	return len(events) > 0 || !known || a.More // the asker asks on
}

func (a *Asked) seen() {
	a.question.After = a.answer.Position
	a.watched.Store(a.answer.Position)
}

func (s *Questions) tellWatchers(m *lockfsm.Machine) {
	if len(s.watchers) == 0 {
		return
	}
	position := m.Position()
	s.keep(slices.DeleteFunc(s.watchers, func(one *Asked) bool {
		switch {
		case one.left.Load():
			return true
		case one.question.After == position:
			return false
		case s.tell(one, m):
			close(one.done)
			return true
		}
		one.seen()
		return false
	}))
}
