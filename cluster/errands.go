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

// governs reports whether this instance still leads in that term, as far as it has looked.
func (s *steward) governs(term uint64) bool {
	return s.leads && s.term == term
}

// prepare asks an instance to start an empty replica. Somebody else may be due as well, so another look follows.
func (c *Cluster) prepare(step voters.Step) {
	o := &c.own
	term := o.steer.term
	c.cfg.Logger.Debug("asking an instance for a replica", "raft", idText(step.ID), "instance", step.Instance, "why", step.Why)
	body := founding.AppendPrepare(nil, founding.Prepare{
		To: step.Instance, Group: o.core.Group(), Raft: step.ID, Term: term, At: o.book.At(), Voters: o.book.Voters(),
	})
	c.errand(o.steer.facts.Where(step.Instance), step.Instance, body, func(outcome founding.Outcome, answer []byte) {
		c.answered(term, step, outcome, answer)
	})
	c.looking.Store(true)
}

// answered takes what became of a Prepare. Silence and what cannot be understood are no answer: the steward waits, and asks anew. That the
// instance is not there any more is one.
func (c *Cluster) answered(term uint64, step voters.Step, outcome founding.Outcome, answer []byte) {
	s := &c.own.steer
	if !s.governs(term) || outcome == founding.Silent {
		return
	}
	state := voters.Refused
	if outcome == founding.Answered {
		p, err := founding.DecodePrepared(step.Instance, answer)
		if err != nil || p.Instance != step.Instance || p.Raft != step.ID {
			return
		}
		switch p.State {
		case founding.Running:
			state = voters.Running
		case founding.Ended:
			state = voters.Ended
		default:
			c.cfg.Logger.Debug("an instance has refused to start a replica", "instance", step.Instance, "why", p.Detail)
		}
	}
	s.core.Answered(c.now(), step.ID, state)
	c.looking.Store(true)
}

// probe finds out whether a life is still there. It is over if the connection to its address is refused, or if another instance proves
// that it is there. An instance that is silent may be slow. What listens there without being one of ours proves nothing: the address may
// be shared, or have been given to another service.
func (c *Cluster) probe(p voters.Probe) {
	s := &c.own.steer
	term := s.term
	c.errand(p.Addr, p.Instance, appendProbe(nil), func(outcome founding.Outcome, _ []byte) {
		if !s.governs(term) {
			return
		}
		over := outcome == founding.Refused || outcome == founding.Other
		s.core.Probed(c.now(), p.ID, over)
		if over {
			c.looking.Store(true)
		}
	})
}
