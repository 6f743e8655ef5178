package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file stands for steward.go and errands.go of the cluster room: the leader's look at the voters.

// Times of looking after the voters.
const (
	lookPause = 50 * time.Millisecond
	lookEvery = time.Second
	tryAgain  = time.Second
)

// steward is the leader's look at the voters, and what became of it.
type steward struct {
	core    voters.Steward
	leads   bool
	term    uint64
	looked  bool
	at      time.Duration // of the last look
	next    time.Duration // when the last step asks for another; 0: it does not
	facts   voters.Facts  // of the last look
	step    voters.Step   // that was handed to the log last
	carried voters.Facts  // that it followed from
	until   time.Duration // if nothing changes before, it is tried again then
}

// look says that the facts may have changed.
func (p *proc) look() {
	if !p.looking && !p.dead {
		p.looking = true
		p.cluster.rouse()
	}
}

// governs reports whether this instance is settled in a group that is born.
func (p *proc) settled() bool { return p.birth.Phase() == founding.Member && !p.birth.Settling() }

// govern looks at the voters if it is time to, and returns when it will be.
func (p *proc) govern(now time.Duration) time.Duration {
	if !p.settled() {
		return now + time.Hour
	}
	if p.steer.due(now, p.looking) <= now {
		p.observe(now)
	}
	return p.steer.due(now, p.looking)
}

func (s *steward) due(now time.Duration, wanted bool) time.Duration {
	due := now + time.Hour
	if s.leads {
		due = s.at + lookEvery
		if s.next > 0 {
			due = min(due, s.next)
		}
	}
	if wanted {
		due = now
	}
	if s.looked {
		due = max(due, s.at+lookPause)
	}
	return due
}

// observe takes in what the replica here sees, if it leads, and carries out what follows.
func (p *proc) observe(now time.Duration) {
	s := &p.steer
	p.looking = false
	facts, term, leads := p.facts()
	s.at, s.looked = now, true
	if !leads {
		p.yield()
		return
	}
	if !s.leads || s.term != term {
		s.core.Begin()
		s.leads, s.term = true, term
		s.step, s.carried, s.until = voters.Step{}, voters.Facts{}, 0
	}
	step := s.core.Look(now, facts, p.w.id())
	s.facts, s.next = facts, 0
	if step.Next > 0 {
		s.next = now + step.Next
	}
	p.execute(now, step)
	for _, q := range s.core.Probes(now) {
		p.probe(q)
	}
}

// yield ends the part of a leader.
func (p *proc) yield() { p.steer.leads, p.steer.facts = false, voters.Facts{} }

// execute carries a step out, once.
func (p *proc) execute(now time.Duration, step voters.Step) {
	s := &p.steer
	switch step.Kind {
	case voters.None:
		return
	case voters.Prepare:
		p.prepare(step)
		return
	}
	if now < s.until && step.Same(s.step) && s.facts.Same(&s.carried) {
		return
	}
	about := founding.Voter{}
	if step.Kind == voters.AddLearner {
		about = founding.Voter{Raft: step.ID, Instance: step.Instance, Addr: s.facts.Where(step.Instance), Life: 1}
		if about.Addr == "" {
			return
		}
	}
	s.step, s.carried, s.until = step, s.facts, now+max(step.Next, tryAgain)
	p.w.note("%v changes the voters: %v %x, promote %x, demote %x, remove %x: %s", p, step.Kind, step.ID, step.Promote, step.Demote, step.Remove, step.Why)
	p.carry(s.term, step, about)
}

// errand puts one question and hands its outcome to the cluster's owner.
func (p *proc) errand(addr string, to nodeid.ID, q query, then func(founding.Outcome, reply)) {
	if addr == "" {
		return
	}
	instance := p.instance
	p.put(addr, to, q, func(outcome founding.Outcome, r reply) {
		if p.alive(instance) {
			p.ofLife(func() { then(outcome, r) })
		}
	})
}

func (s *steward) governs(term uint64) bool { return s.leads && s.term == term }

// prepare asks an instance to start an empty replica.
func (p *proc) prepare(step voters.Step) {
	term := p.steer.term
	p.w.note("%v prepares %x as %x: %s", p, step.Instance, step.ID, step.Why)
	body := founding.AppendPrepare(nil, founding.Prepare{
		To: step.Instance, Group: p.birth.Group(), Raft: step.ID, Term: term, At: p.book.At(), Voters: p.book.Voters(),
	})
	p.errand(p.steer.facts.Where(step.Instance), step.Instance, query{body: body}, func(outcome founding.Outcome, r reply) { p.answered(term, step, outcome, r.body) })
	p.look()
}

// answered takes what became of a Prepare.
func (p *proc) answered(term uint64, step voters.Step, outcome founding.Outcome, answer []byte) {
	s := &p.steer
	if !s.governs(term) || outcome == founding.Silent {
		return
	}
	state := voters.Refused
	if outcome == founding.Answered {
		a, err := founding.DecodePrepared(step.Instance, answer)
		if err != nil || a.Instance != step.Instance || a.Raft != step.ID {
			return
		}
		switch a.State {
		case founding.Running:
			state = voters.Running
		case founding.Ended:
			state = voters.Ended
		}
	}
	s.core.Answered(p.birthNow(), step.ID, state)
	p.look()
}

// probe finds out whether a life is still there.
func (p *proc) probe(q voters.Probe) {
	s := &p.steer
	term := s.term
	p.errand(q.Addr, q.Instance, query{probe: true}, func(outcome founding.Outcome, _ reply) {
		if !s.governs(term) {
			return
		}
		over := outcome == founding.Refused || outcome == founding.Other
		s.core.Probed(p.birthNow(), q.ID, over)
		if over {
			p.look()
		}
	})
}
