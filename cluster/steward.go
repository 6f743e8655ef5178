package cluster

import (
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/lead"
	"github.com/mortise-lock/mortise/cluster/voters"
)

// This file carries out what package lead decides about the voters.

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
		return now + time.Hour // before the group is born no instance may change who is in it
	}
	if o.lead.Due(now, c.looking.Load()) <= now {
		c.observe(now)
	}
	return o.lead.Due(now, c.looking.Load())
}

// observe takes in what the replica here sees, if it leads, and carries out what follows.
func (c *Cluster) observe(now time.Duration) {
	l := &c.own.lead
	c.looking.Store(false) // before the facts are read: what changes from now on asks for another look
	facts, term, leads := c.cfg.Host.Facts()
	if !leads {
		l.Rest(now)
		c.standing.Store(nil)
		return
	}
	orders := l.Look(now, facts, term, c.id())
	report := l.Report()
	c.standing.Store(&report)
	if orders.Prepare != nil {
		c.prepare(*orders.Prepare)
	}
	if orders.Carry != nil {
		c.carry(orders.Carry)
	}
	for _, p := range orders.Probes {
		c.probe(p)
	}
}

// yield ends the part of a leader.
func (c *Cluster) yield() {
	c.own.lead.Yield()
	c.standing.Store(nil)
}

// Report returns how the voters stood at the last look, if this instance leads. Its slices must not be changed.
func (c *Cluster) Report() (voters.Report, bool) {
	if r := c.standing.Load(); r != nil {
		return *r, true
	}
	return voters.Report{}, false
}

// carry hands a step to the log, and says so.
func (c *Cluster) carry(o *lead.Carry) {
	if o.Again {
		c.cfg.Logger.Debug("changing the voters, again", "step", o.Step.Kind.String(), "why", o.Step.Why)
	} else {
		args := []any{"step", o.Step.Kind.String(), "why", o.Step.Why}
		if o.Step.Kind == voters.AddLearner {
			args = append(args, "instance", o.About.Instance, "addr", o.About.Addr)
		}
		c.cfg.Logger.Info("changing the voters", args...)
	}
	c.cfg.Host.Carry(o.Term, o.Step, o.About)
}
