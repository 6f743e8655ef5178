package replica

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/lockfsm"
)

// Questions are those that a leader works on: each is answered on the goroutine that owns the
// state, behind a round by which a majority has confirmed that it leads. So an answer is never
// older than its question. Ask, Drop and Watching may be called by any goroutine; the rest is the
// Core's.
type Questions struct {
	leader uint64 // raft ID of this replica

	mu sync.Mutex // never held across a wait
	// begins with the raft ID, so that no other leader gives the same numbers; below QuestionRound
	last    uint64
	waiting map[uint64]*Asked // by the number of its round, or of its command

	watching atomic.Int64 // how many are in watchers
	watchers []*Asked     // that wait for something to happen; owned by the log's owner goroutine
}

// NewQuestions returns those of the replica with that raft ID.
func NewQuestions(raft uint64) *Questions { return &Questions{leader: raft, last: raft >> 2} }

// Asked is a question under way. Whoever has asked it waits for Done.
type Asked struct {
	Number uint64 // of its round, behind QuestionRound, or of its command

	question Question
	// of a Watch that waits: the position up to which nothing has happened; 0: it does not wait yet
	watched atomic.Uint64
	left    atomic.Bool   // and its asker does not wait any more
	done    chan struct{} // closed when answer or err is set
	answer  Answer
	err     error
}

// Done is closed when there is an answer.
func (a *Asked) Done() <-chan struct{} { return a.done }

// Answer returns what was answered. It is read behind Done.
func (a *Asked) Answer() (*Answer, error) { return &a.answer, a.err }

// Ask takes a question, unless there are too many. The caller calls for its round or its command,
// and in the end Drop.
func (s *Questions) Ask(q Question) (*Asked, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := questionsMax
	if q.Op == OpWatch { // after an event all who watch ask again at once
		limit = watchersMax - s.Watching()
	}
	if len(s.waiting) >= limit {
		return nil, ErrBusy
	}
	if s.waiting == nil {
		s.waiting = map[uint64]*Asked{}
	}
	s.last++
	one := &Asked{Number: s.last, question: q, done: make(chan struct{})}
	s.waiting[s.last] = one
	return one, nil
}

// Drop says that nobody waits for the answer any more.
func (s *Questions) Drop(a *Asked) {
	a.left.Store(true)
	s.take(a.Number)
}

// Idle is what a Watch is answered with when nothing has happened for a while: how far that has
// been seen. The asker calls it in place of waiting on.
func (s *Questions) Idle(a *Asked) (*Answer, error) {
	a.left.Store(true)
	position := a.watched.Load()
	if position == 0 {
		return nil, ErrBusy // not even the round has come back
	}
	return &Answer{Position: position, Leader: s.leader}, nil
}

// Watching returns how many wait for something to happen.
func (s *Questions) Watching() int { return int(s.watching.Load()) }

// take removes a question, so that one goroutine only answers it; nil: nobody waits for it any
// more.
func (s *Questions) take(number uint64) *Asked {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.waiting[number]
	delete(s.waiting, number)
	return one
}

// end answers all questions and all watchers: what was asked of one lead is not answered by
// another.
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

// see answers the question of a round that is done.
func (s *Questions) see(number uint64, m *lockfsm.Machine) {
	one := s.take(number)
	if one == nil {
		return
	}
	switch q, a := &one.question, &one.answer; q.Op {
	case OpPeek:
		if l, ok := m.Inspect(q.Key, peekQueueMax); ok {
			a.Locks = append(a.Locks, l)
		}
	case OpList:
		a.Locks, a.Next, a.More = m.Walk(q.Next, q.Key, PageMax, listQueueMax, pageBudget)
	case OpCheck:
		a.Held = m.Holds(q.Key, lockfsm.Token(q.Token))
	case OpGet:
		if l, ok := m.Inspect(q.Key, 0); ok {
			a.Data = &l.Data
		}
	case OpSessions, OpMembers:
		a.Sessions, a.From, a.More = m.WalkSessions(q.From, PageMax, pageBudget)
	case OpNames:
	case OpEnds:
		a.Events = m.Ends()
	case OpWalk:
		a.Locks, a.Next, a.More = m.Walk(q.Next, q.Key, PageMax, peekQueueMax, pageBudget)
		a.Leader, a.Position = s.leader, m.Position()
	case OpHolders:
		if l, ok := m.Holders(q.Key, lockfsm.Revision(q.After), peekQueueMax); ok {
			a.Locks = append(a.Locks, l)
		}
		a.Leader, a.Position = s.leader, m.Position()
	case OpWatch:
		if !s.tell(one, m) {
			one.seen()
			s.keep(append(s.watchers, one))
			return
		}
	default:
		one.err = fmt.Errorf("mortise: no such question: %q", q.Op)
	}
	close(one.done)
}

// changed says what an Evict or a Put has done. One that was proposed in an earlier term finds no
// asker.
func (s *Questions) changed(result *lockfsm.Result) {
	one := s.take(uint64(result.Number))
	if one == nil {
		return
	}
	a := &one.answer
	a.Data, a.Code, a.Budget = result.Data, result.Code, result.Budget
	switch result.Code {
	case lockfsm.Changed, lockfsm.TooMuchData, lockfsm.BadKey, lockfsm.OverGroupBudget:
	case lockfsm.Done, lockfsm.Finished:
		a.Held = result.Code == lockfsm.Done
	default:
		one.err = fmt.Errorf("mortise: the group does not carry it out: %v", result.Code)
	}
	close(one.done)
}

// tell answers a watcher if something has happened, or if it cannot be known.
func (s *Questions) tell(one *Asked, m *lockfsm.Machine) bool {
	q, a := &one.question, &one.answer
	events, upTo, known := m.Since(q.After, q.Key, eventsMax)
	a.Events, a.Position, a.Missed, a.Leader, a.More = events, upTo, !known, s.leader, upTo != m.Position()
	return len(events) > 0 || !known
}

// seen notes up to where nothing has happened.
func (a *Asked) seen() {
	a.question.After = a.answer.Position
	a.watched.Store(a.answer.Position)
}

// tellWatchers answers those for whom something has happened. Each looks at each event once.
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
