package session_test

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/keeper"
)

// This file replaces raft in the simulation. There is one correct log and one real leader per term.
// A deposed leader learns later that it was deposed.

// elect makes a voter the leader of a new term. A prefix of the old leader's uncommitted proposals
// may be committed. The voters learn of the election at different times.
func (s *sim) elect(leader int, oldLearnsIn time.Duration) {
	for len(s.pending) > 0 && s.chance(0.5) {
		s.commit(s.term, s.pending[0])
		s.pending = s.pending[1:]
	}
	s.pending = nil
	old := s.leader
	s.term++
	s.leader = leader
	s.stats.changes++
	term := s.term
	for i := range s.config.voters {
		n := s.nodes[i]
		learns := s.between(time.Millisecond, 50*time.Millisecond)
		if i == old && old != leader {
			learns = oldLearnsIn
			n.deafUntil = s.now + oldLearnsIn // the old leader is cut off and gets no entries
		}
		if i == leader {
			continue
		}
		s.after(learns, func() { n.learn(term, leader) })
	}
	n := s.nodes[leader]
	n.deafUntil = 0
	n.learn(term, leader)
	s.after(s.between(time.Millisecond, 20*time.Millisecond), func() {
		if s.term == term {
			s.commit(term, nil) // the first entry of the term
		}
	})
}

func (n *simNode) learn(term uint64, leader int) {
	role := keeper.Role{Term: term, Leading: n.id == nodeidtest.ID(uint64(leader+1))}
	if leader >= 0 {
		role.Leader = nodeid.Endpoint{ID: nodeidtest.ID(uint64(leader + 1))}
	}
	if term < n.role.Term || role == n.role {
		return
	}
	n.role = role
	n.keeperInput(func(now clock.Time) { n.keeper.Role(now, role) })
}

func (s *sim) propose(n *simNode, term uint64, blob []byte) bool {
	if s.faults && s.chance(0.005) || s.now < s.hungTo && s.chance(0.5) {
		return false
	}
	if n.role.Term != term || s.term != term || s.nodes[s.leader] != n {
		return true // the proposal is discarded at the end of the term, or never committed
	}
	s.pending = append(s.pending, blob)
	s.after(s.between(100*time.Microsecond, 3*time.Millisecond), func() { s.commitNext(term) })
	return true
}

func (s *sim) commitNext(term uint64) {
	switch {
	case s.term != term || len(s.pending) == 0:
	case s.now < s.hungTo:
		s.after(s.hungTo-s.now, func() { s.commitNext(term) })
	default:
		s.commit(term, s.pending[0])
		s.pending = s.pending[1:]
	}
}

// commit appends an entry. Each voter applies it at a different time.
func (s *sim) commit(term uint64, blob []byte) {
	s.log = append(s.log, simEntry{term: term, blob: blob})
	index := len(s.log)
	for i := range s.config.voters {
		n := s.nodes[i]
		delay := s.between(0, 20*time.Millisecond)
		if i == s.leader {
			delay = s.between(0, time.Millisecond)
		}
		s.after(delay, func() { n.apply(index) })
	}
}

// apply applies the log up to index. A leader that applies an entry of a higher term detects that
// it was deposed.
func (n *simNode) apply(index int) {
	s := n.s
	if until := max(n.pausedUntil, n.deafUntil); s.now < until {
		s.after(until-s.now, func() { n.apply(index) })
		return
	}
	for n.applied < index {
		e := s.log[n.applied]
		n.applied++
		if e.term > n.role.Term {
			n.learn(e.term, -1)
		}
		n.applyEntry(e)
	}
}

func (n *simNode) applyEntry(e simEntry) {
	s := n.s
	var results []lockfsm.Result
	n.machine.ApplyEntry(uint64(n.applied), e.term, e.blob, func(r *lockfsm.Result) {
		if r.Kind == lockfsm.Born {
			n.bornAt = n.clock()
		}
		if r.Kind == lockfsm.Expire && r.Code == lockfsm.Done && n.role.Leading {
			s.stats.expired++
		}
		results = append(results, r.Clone())
	})
	if !n.role.Leading || n.role.Term != e.term && len(e.blob) == 0 {
		return
	}
	if len(e.blob) == 0 {
		l := keeper.Leadership{Term: e.term, Sessions: n.machine.Sessions(), Born: n.machine.Born(),
			GraceOver: n.machine.GraceOver(), BornAt: n.bornAt, Grace: s.config.grace,
			Rules: n.machine.Charter().Rules}
		n.keeperInput(func(now clock.Time) {
			n.keeper.Leads(now, l)
			n.keeper.AllBound(now)
		})
		return
	}
	n.keeperInput(func(now clock.Time) { n.keeper.Applied(now, results) })
}

// confirm simulates a ReadIndex round. The leadership is checked some time after the request, and
// the confirmation arrives later.
func (s *sim) confirm(n *simNode, term, round uint64) {
	index := len(s.log)
	first := s.between(0, 2*time.Millisecond)
	if s.faults && s.chance(0.02) {
		first = s.between(0, 400*time.Millisecond)
	}
	s.after(first, func() {
		if s.term != term || s.nodes[s.leader] != n {
			return
		}
		s.after(s.between(0, time.Millisecond), func() { n.confirmed(term, round, index) })
	})
}

func (n *simNode) confirmed(term, round uint64, index int) {
	if n.role.Term != term {
		return
	}
	if n.applied < index {
		n.s.after(time.Millisecond, func() { n.confirmed(term, round, index) })
		return
	}
	n.keeperInput(func(now clock.Time) { n.keeper.Confirmed(now, term, round) })
}

func (s *sim) nemesis() {
	if !s.faults {
		return
	}
	a, b := s.nodes[s.rand.IntN(len(s.nodes))], s.nodes[s.rand.IntN(len(s.nodes))]
	ttl := s.config.ttl
	switch s.rand.IntN(10) {
	case 0, 1:
		if a != b {
			s.breakConn(a, b, 0)
		}
	case 2:
		if a != b {
			s.breakConn(a, b, s.between(0, 2*ttl))
		}
	case 3: // the stream stays open, but no message arrives
		if a != b {
			s.conn(a.id, b.id).stuckTo = s.now + s.between(0, 2*ttl)
		}
	case 4:
		a.pause(s.between(0, ttl/2))
	case 5:
		a.pause(s.between(ttl/2, 2*ttl))
	case 6: // an election that the old leader may detect much later
		s.elect(s.rand.IntN(s.config.voters), s.between(0, ttl/4))
	case 7:
		s.elect(s.rand.IntN(s.config.voters), s.between(ttl/2, 2*ttl))
	case 8: // silence in one direction, usually long enough to end a session
		if a != b {
			s.silence(a, b, s.between(0, 4*ttl))
		}
	case 9: // the leader's proposals wait for its disk, while a majority confirms its leadership
		s.hungTo = s.now + s.between(0, ttl/2)
	}
	s.after(s.between(ttl/20, ttl), s.nemesis)
}
