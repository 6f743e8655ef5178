package cluster

import (
	"context"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file is what a leader asks other instances for the sake of the voters. Each question has a helper goroutine of its own and ends
// after a second. An answer that comes when the lead is over means nothing any more.

// errand puts one question and hands its outcome to the owner.
func (c *Cluster) errand(addr string, to nodeid.ID, body []byte, then func(founding.Outcome, []byte)) {
	if c.cfg.Net == nil || addr == "" {
		return
	}
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		answer, _, err := c.cfg.Net.Ask(ctx, addr, to, body)
		c.in.postOfLife(func() { then(outcomeOf(answer, err), answer) })
	})
}

// prepare asks an instance to start an empty replica. Another one may be due as well, so another look follows.
func (c *Cluster) prepare(step voters.Step) {
	o := &c.own
	term := o.lead.Term()
	c.cfg.Logger.Debug("asking an instance for a replica", "raft", idText(step.ID), "instance", step.Instance, "why", step.Why)
	body := o.lead.Question(step, o.core.Group(), o.book.At(), o.book.Voters())
	c.errand(o.lead.Where(step.Instance), step.Instance, body, func(outcome founding.Outcome, answer []byte) {
		look, declined := o.lead.Answered(c.now(), term, step, outcome, answer)
		if declined != "" {
			c.cfg.Logger.Debug("an instance has refused to start a replica", "instance", step.Instance, "why", declined)
		}
		if look {
			c.looking.Store(true)
		}
	})
	c.looking.Store(true)
}

// probe finds out whether a life is still there.
func (c *Cluster) probe(p voters.Probe) {
	term := c.own.lead.Term()
	if c.cfg.Net == nil || p.Addr == "" {
		return
	}
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		err := c.cfg.Net.Probe(ctx, p.Addr, p.Instance)
		c.in.postOfLife(func() {
			if c.own.lead.Probed(c.now(), term, p, outcomeOfError(err)) {
				c.looking.Store(true)
			}
		})
	})
}
