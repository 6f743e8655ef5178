package cluster

import (
	"context"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// errand puts a question of the core's. Each has a helper goroutine of its own and ends after a second.
// What comes of it in a later life means nothing.
func (c *Cluster) errand(e Errand) {
	if step := e.Prepare; step != nil {
		c.cfg.Logger.Debug("asking an instance for a replica", "raft", idText(step.ID), "instance", step.Instance, "why", step.Why)
	}
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		answer, _, err := c.cfg.Net.Ask(ctx, e.Addr, e.To, e.question())
		c.in.postOfLife(func() { c.finished(e, outcomeOf(answer, err), answer) })
	})
}

// question is an errand as it is sent.
func (e *Errand) question() []byte {
	switch {
	case e.Consult != nil:
		return consultation(*e.Consult).append(nil)
	case e.Body == nil:
		return appendProbe(nil)
	}
	return e.Body
}

// finished hands the core what became of an errand.
func (c *Cluster) finished(e Errand, outcome founding.Outcome, answer []byte) {
	if e.Consult != nil {
		advice, ok := adviceOf(answer)
		c.own.core.Advised(c.now(), e, advice, ok && outcome == founding.Answered)
		return
	}
	if declined := c.own.core.Done(c.now(), e, outcome, answer); declined != "" {
		c.cfg.Logger.Debug("an instance has refused to start a replica", "instance", e.To, "why", declined)
	}
}
