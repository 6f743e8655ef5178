package sim

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file carries out what package lead decides about the voters, in place of the cluster's owner.

// look says that the facts may have changed.
func (p *proc) look() {
	if !p.looking && !p.dead {
		p.looking = true
		p.cluster.rouse()
	}
}

// settled reports whether this instance is settled in a group that is born.
func (p *proc) settled() bool { return p.birth.Phase() == founding.Member && !p.birth.Settling() }

// govern looks at the voters if it is time to, and returns when it will be.
func (p *proc) govern(now time.Duration) time.Duration {
	if !p.settled() {
		return now + time.Hour
	}
	if p.lead.Due(now, p.looking) <= now {
		p.observe(now)
	}
	return p.lead.Due(now, p.looking)
}

// observe takes in what the replica here sees, if it leads, and carries out what follows.
func (p *proc) observe(now time.Duration) {
	p.looking = false
	facts, term, leads := p.facts()
	if !leads {
		p.lead.Rest(now)
		return
	}
	orders := p.lead.Look(now, facts, term, p.w.id())
	if step := orders.Prepare; step != nil {
		p.prepare(*step)
	}
	if o := orders.Carry; o != nil {
		p.w.note("%v changes the voters: %v %x, promote %x, demote %x, remove %x: %s", p, o.Step.Kind, o.Step.ID, o.Step.Promote, o.Step.Demote, o.Step.Remove, o.Step.Why)
		p.carry(o.Term, o.Step, o.About)
	}
	for _, q := range orders.Probes {
		p.probe(q)
	}
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

// prepare asks an instance to start an empty replica.
func (p *proc) prepare(step voters.Step) {
	term := p.lead.Term()
	p.w.note("%v prepares %x as %x: %s", p, step.Instance, step.ID, step.Why)
	body := p.lead.Question(step, p.birth.Group(), p.book.At(), p.book.Voters())
	p.errand(p.lead.Where(step.Instance), step.Instance, query{body: body}, func(outcome founding.Outcome, r reply) {
		if look, _ := p.lead.Answered(p.birthNow(), term, step, outcome, r.body); look {
			p.look()
		}
	})
	p.look()
}

// probe finds out whether a life is still there.
func (p *proc) probe(q voters.Probe) {
	term := p.lead.Term()
	p.errand(q.Addr, q.Instance, query{probe: true}, func(outcome founding.Outcome, _ reply) {
		if p.lead.Probed(p.birthNow(), term, q, outcome) {
			p.look()
		}
	})
}
