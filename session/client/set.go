package client

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// SetMember is what each session of an instance is told. *Client implements it.
type SetMember interface {
	comparable
	Rebind(record []byte, targets []nodeid.Endpoint)
	SetTargets(targets []nodeid.Endpoint)
	Receive(from nodeid.ID, replies []byte)
	Down(peer nodeid.ID)
	Leaving()
	Close()
}

// Set is the clients of all sessions of an instance: its own one, which is the first, and those of
// the user. Each event that concerns sessions reaches all of them through one method of Set, the
// first session before the others. All methods are safe for concurrent use.
type Set[C SetMember] struct {
	First C   // of the instance's own session; set before the first call
	Most  int // the largest number of the user's sessions; set before the first call

	mu      sync.Mutex // guards the fields below; never held across a wait
	more    []C
	record  []byte // record of the present incarnation; nil while the instance is in no group
	targets []nodeid.Endpoint
	life    uint64
	ended   bool
}

// List returns the clients of all sessions, the first one first.
func (s *Set[C]) List() []C { return append([]C{s.First}, s.Own()...) }

// Own returns the clients of the user's sessions, in the order in which they were added.
func (s *Set[C]) Own() []C {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.more)
}

// Add adds a session of the user, and tells it the present record and targets. It fails with
// ErrNoRoom if there are too many, and with ErrClosed after Close; then c is not in the set.
func (s *Set[C]) Add(c C) error {
	s.mu.Lock()
	switch {
	case s.ended:
		s.mu.Unlock()
		return ErrClosed
	case len(s.more) == s.Most:
		s.mu.Unlock()
		return fmt.Errorf("%w: NewSession: there are %d already, the most that a node may have", ErrNoRoom, s.Most)
	}
	s.more = append(s.more, c)
	// While mu is released, Rebind or SetTargets may give c new values, and c.Rebind may then replace
	// these with old ones. So repeat c.Rebind until s.life stays the same.
	for life := uint64(0); life != s.life; {
		var record []byte
		var targets []nodeid.Endpoint
		life, record, targets = s.life, s.record, s.targets
		s.mu.Unlock()
		c.Rebind(record, targets)
		s.mu.Lock()
	}
	s.mu.Unlock()
	return nil
}

// Drop removes a session of the user. It does not close the session.
func (s *Set[C]) Drop(c C) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = slices.DeleteFunc(s.more, func(each C) bool { return each == c })
}

// Rebind begins a new incarnation with the record of the first session, and that of each other
// session. Nil records mean no group. The set keeps the slices.
func (s *Set[C]) Rebind(first, own []byte, targets []nodeid.Endpoint) {
	s.mu.Lock()
	s.record, s.targets = own, targets
	s.life++
	all := slices.Clone(s.more) // a client that is added later gets the new values from Add alone
	s.mu.Unlock()
	s.First.Rebind(first, targets)
	for _, c := range all {
		c.Rebind(own, targets)
	}
}

// SetTargets passes the voters to all sessions, also to those that are added later.
func (s *Set[C]) SetTargets(targets []nodeid.Endpoint) {
	s.mu.Lock()
	s.targets = targets
	s.life++
	s.mu.Unlock()
	for _, c := range s.List() {
		c.SetTargets(targets)
	}
}

// Receive passes replies to all sessions, which ignore the replies to others. No client keeps or
// changes the bytes.
func (s *Set[C]) Receive(from nodeid.ID, replies []byte) {
	for _, c := range s.List() {
		c.Receive(from, replies)
	}
}

// Down tells all sessions that the last stream to a peer has ended, or that none could be opened.
func (s *Set[C]) Down(peer nodeid.ID) {
	for _, c := range s.List() {
		c.Down(peer)
	}
}

// Leaving tells all sessions that the instance is about to leave.
func (s *Set[C]) Leaving() {
	for _, c := range s.List() {
		c.Leaving()
	}
}

// Close closes all sessions, the first one last. No session can be added afterwards.
func (s *Set[C]) Close() {
	s.mu.Lock()
	s.ended = true
	all := s.more
	s.more = nil
	s.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
	s.First.Close()
}
