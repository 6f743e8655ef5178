package cluster

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is when a leader looks at its voters, and what it answers about them. What follows from a
// look, package lead decides.

// Errand is a question for the sake of the voters, or of their configuration.
type Errand struct {
	To   nodeid.ID
	Addr string
	Body []byte // a message of founding; nil: whether that instance is there

	Prepare *voters.Step // what it asks for, if it asks for a replica
	term    uint64       // of the lead in which it was decided

	probe     *voters.Probe
	announced *announcement
	attached  bool
}

// Look takes that what Sight.Facts returns may have changed.
func (c *Core) Look() { c.wanted = true }

// govern looks at the voters if it is time to, and returns when it will be. Before the group is born no
// instance may change its voters.
func (c *Core) govern(now time.Duration, fresh uint64) time.Duration {
	if !c.settled() {
		return now + idle
	}
	if c.lead.Due(now, c.wanted) <= now {
		c.observe(now, fresh)
	}
	return c.lead.Due(now, c.wanted)
}

// observe takes in what the replica here sees, if it leads.
func (c *Core) observe(now time.Duration, fresh uint64) {
	c.wanted = false
	facts, term, leads := c.cfg.Sight.Facts()
	if !leads {
		c.lead.Rest(now)
		return
	}
	orders := c.lead.Look(now, facts, term, fresh)
	if orders.Carry != nil {
		c.acts.Carry = append(c.acts.Carry, *orders.Carry)
	}
	if step := orders.Prepare; step != nil {
		body := c.lead.Question(*step, c.Founding.Group(), c.book.At(), c.book.Voters())
		c.errand(Errand{To: step.Instance, Addr: c.lead.Where(step.Instance), Body: body, Prepare: step})
		c.wanted = true // another one may be due as well
	}
	for _, p := range orders.Probes {
		c.errand(Errand{To: p.Instance, Addr: p.Addr, probe: &p})
	}
}

func (c *Core) errand(e Errand) {
	if e.Addr == "" || c.cfg.Founding.Settings.Solo {
		return
	}
	e.term = c.lead.Term()
	c.acts.Errands = append(c.acts.Errands, e)
}

// Done takes what became of an errand. declined is why an instance does not start a replica.
func (c *Core) Done(now time.Duration, e Errand, outcome founding.Outcome, answer []byte) (declined string) {
	look := false
	switch {
	case e.announced != nil:
		c.announced(now, e.announced, outcome)
	case e.attached:
		c.spread.telling-- // a question finds what is missed
	case e.Prepare != nil:
		look, declined = c.lead.Answered(now, e.term, *e.Prepare, outcome, answer)
	case e.probe != nil:
		look = c.lead.Probed(now, e.term, *e.probe, outcome)
	}
	c.wanted = c.wanted || look
	return declined
}

// Gone takes that an instance has said on its own connection that the replica that it had is over. With
// a directory the next process may go on with it.
func (c *Core) Gone(now time.Duration, instance nodeid.ID) {
	c.Founding.Departed(now, instance)
	if c.lead.Gone(instance, c.book.Voters()) {
		c.wanted = true
	}
}

// Report returns how the voters stood at the last look, if this instance leads. Its slices must not be
// changed.
func (c *Core) Report() (report voters.Report, leads bool) {
	if !c.lead.Leads() {
		return report, false
	}
	return c.lead.Report(), true
}

// Consultation is the question how the voters of a group stand, and whether a replica may stop.
type Consultation struct {
	Group    uint64
	Instance nodeid.ID // that asks
	Raft     uint64    // of the replica
}

// Advice is the answer of an instance: that of the leader, or which instance leads.
type Advice struct {
	Counsel *Counsel  // nil: this instance does not lead
	Leader  nodeid.ID // which instance leads, and where; zero: that is not known here
	Addr    string
}

// Advise answers a consultation. A leader looks anew if it has not looked for a while: one that has
// lost its lead must not go on as if it had not. fresh is a raft ID that was never used.
func (c *Core) Advise(now time.Duration, q Consultation, fresh uint64) (a Advice) {
	if q.Group != c.Founding.Group() {
		return a
	}
	if c.settled() {
		if !c.lead.Fresh(now) {
			c.observe(now, fresh)
		}
		if counsel, leads := c.lead.Counsel(q.Raft, q.Instance); leads {
			counsel.Leader = c.Founding.Instance()
			return Advice{Counsel: &counsel}
		}
	}
	if c.Founding.Phase() != founding.Member {
		return a
	}
	if instance, addr := c.cfg.Sight.Leader(); instance != c.Founding.Instance() && instance != q.Instance {
		a.Leader, a.Addr = instance, addr
	}
	return a
}

// whom returns an instance to ask: the one that leads as far as is known here, and by turns some voter,
// since that may be out of date. word is random.
func (c *Core) whom(try int, word uint64) (instance nodeid.ID, addr string) {
	self := c.Founding.Instance()
	if c.Founding.Phase() != founding.Member || c.cfg.Founding.Settings.Solo {
		return nodeid.ID{}, ""
	}
	if instance, addr = c.cfg.Sight.Leader(); instance == self {
		instance, addr = nodeid.ID{}, ""
	}
	others := slices.DeleteFunc(c.book.Voters(), func(v Voter) bool { return v.Learner || v.Instance == self })
	if len(others) == 0 || !instance.IsZero() && try%2 == 0 {
		return instance, addr
	}
	v := others[word%uint64(len(others))]
	return v.Instance, v.Addr
}

const (
	consultEvery = 100 * time.Millisecond // between two attempts, plus up to half of it at random
	consultHops  = 3                      // how often an attempt follows "not me, ask ..."
)

// Route is an attempt to have the leader answer a consultation.
type Route struct {
	Counsel  *Counsel // not nil: it has answered, and there is nothing more to do
	Question Consultation
	To       nodeid.ID     // the instance to put the question to
	Addr     string        // empty: there is none to ask now
	Pause    time.Duration // until the next attempt, if nothing comes of this one
	hops     int
}

// Consult begins an attempt. About which replica is asked is read anew for each: that of this instance
// if raft is nil. fresh is a raft ID that was never used, and word is random.
func (c *Core) Consult(now time.Duration, raft *uint64, try int, fresh, word uint64) Route {
	if raft == nil {
		raft = &c.raft
	}
	q := Consultation{Group: c.Founding.Group(), Instance: c.Founding.Instance(), Raft: *raft}
	r := Route{Question: q, Pause: consultEvery + time.Duration(word%uint64(consultEvery/2)), hops: consultHops}
	if r.Counsel = c.Advise(now, q, fresh).Counsel; r.Counsel == nil {
		r.To, r.Addr = c.whom(try, word)
	}
	return r
}

// Advised takes an answer, and reports whether the attempt goes on: with another instance, which the
// one that was asked has named.
func (r *Route) Advised(a Advice) (again bool) {
	other := a.Leader
	if r.Counsel = a.Counsel; r.Counsel != nil || r.hops == 0 || other.IsZero() || other == r.To {
		return false
	}
	r.To, r.Addr, r.hops = other, a.Addr, r.hops-1
	return true
}
