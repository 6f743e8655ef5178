package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
)

// Times of looking after the voters.
const (
	lookPause = 50 * time.Millisecond // between two looks at the least
	lookEvery = time.Second           // while this instance leads and nobody says that anything has changed
	tryAgain  = time.Second           // before a step is carried out that was carried out already, and all is as it was then
)

// steward is the leader's look at the voters, and what became of it. The owner goroutine owns it; it is at rest on all who do not lead.
type steward struct {
	core    voters.Steward
	leads   bool
	term    uint64
	looked  bool
	at      time.Duration // of the last look
	next    time.Duration // when the last step asks for another; 0: it does not
	facts   voters.Facts  // of the last look
	carried carried
	said    voters.Step // last told in the log in this term
}

// carried is the step that was handed to the log last.
type carried struct {
	step  voters.Step
	facts voters.Facts
	until time.Duration // if nothing changes before, it is tried again then
}

// Look says that what Host.Facts returns may have changed: a role, a session, a link, the progress of a replica. It is cheap, and may be
// called on any goroutine as often as it happens.
func (c *Cluster) Look() {
	if !c.looking.Swap(true) {
		c.in.post(func() {}) // the turn that follows looks
	}
}

// govern looks at the voters if it is time to, and returns when it will be.
func (c *Cluster) govern(now time.Duration) time.Duration {
	o := &c.own
	if o.core.Phase() != founding.Member || o.core.Settling() || o.core.Refusal() != "" {
		return now + time.Hour // before the group is born nobody may change who is in it
	}
	if o.steer.due(now, c.looking.Load()) <= now {
		c.observe(now)
	}
	return o.steer.due(now, c.looking.Load())
}

// due is when to look, wanted or not.
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
func (c *Cluster) observe(now time.Duration) {
	s := &c.own.steer
	c.looking.Store(false) // before the facts are read: what changes from now on asks for another look
	facts, term, leads := c.cfg.Host.Facts()
	s.at, s.looked = now, true
	if !leads {
		c.yield()
		return
	}
	if !s.leads || s.term != term {
		s.core.Begin()
		s.leads, s.term = true, term
		s.carried, s.said = carried{}, voters.Step{}
	}
	step := s.core.Look(now, facts, c.id())
	s.facts, s.next = facts, 0
	if step.Next > 0 {
		s.next = now + step.Next
	}
	report := s.core.Report()
	c.standing.Store(&report)
	c.execute(now, step)
	for _, p := range s.core.Probes(now) {
		c.probe(p)
	}
}

// yield ends the part of a leader.
func (c *Cluster) yield() {
	c.own.steer.leads, c.own.steer.facts = false, voters.Facts{}
	c.standing.Store(nil)
}

// Report returns how the voters stood at the last look, if this instance leads. Its slices must not be changed.
func (c *Cluster) Report() (voters.Report, bool) {
	if r := c.standing.Load(); r != nil {
		return *r, true
	}
	return voters.Report{}, false
}

// execute carries a step out, once: what the log does with it takes a while to show in the facts, and meanwhile every look asks for it.
func (c *Cluster) execute(now time.Duration, step voters.Step) {
	s := &c.own.steer
	switch step.Kind {
	case voters.None:
		return
	case voters.Prepare:
		c.prepare(step)
		return
	}
	if now < s.carried.until && step.Same(s.carried.step) && s.facts.Same(&s.carried.facts) {
		return
	}
	about := Voter{}
	if step.Kind == voters.AddLearner {
		about = Voter{Raft: step.ID, Instance: step.Instance, Addr: s.facts.Where(step.Instance), Life: 1}
		if about.Addr == "" {
			return // its session has just ended
		}
	}
	s.carried = carried{step: step, facts: s.facts, until: now + max(step.Next, tryAgain)}
	if step.Same(s.said) {
		c.cfg.Logger.Debug("changing the voters, again", "step", step.Kind.String(), "why", step.Why)
	} else {
		args := []any{"step", step.Kind.String(), "why", step.Why}
		if step.Kind == voters.AddLearner {
			args = append(args, "instance", about.Instance, "addr", about.Addr)
		}
		c.cfg.Logger.Info("changing the voters", args...)
	}
	s.said = step
	c.cfg.Host.Carry(s.term, step, about)
}
