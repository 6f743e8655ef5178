package cluster

import (
	"context"
	"errors"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// task sends a question of the core on its own helper goroutine, for at most a second. The core
// ignores answers that arrive in a later incarnation.
func (c *Cluster) task(e Task) {
	if step := e.Prepare; step != nil {
		c.cfg.Logger.Debug("asking an instance for a replica", "raft", idText(step.ID), "instance", step.Instance,
			"why", step.Why)
	}
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		switch net := c.cfg.Net; {
		case e.Query != nil:
			reply, err := net.QueryStatus(ctx, e.Addr, e.To, *e.Query)
			c.in.post(func() { c.own.core.StatusReplied(c.now(), e, reply, err == nil) })
		case e.Body == nil:
			err := net.Probe(ctx, e.Addr, e.To)
			c.in.post(func() { c.finished(e, outcomeOfError(err), answeredBy(err), nil) })
		default:
			answer, from, err := net.Ask(ctx, e.Addr, e.To, e.Body)
			c.in.post(func() { c.finished(e, outcomeOf(answer, err), from, answer) })
		}
	})
}

func (c *Cluster) finished(e Task, outcome founding.Outcome, from nodeid.ID, answer []byte) {
	if declined := c.own.core.Done(c.now(), e, outcome, from, answer); declined != "" {
		c.cfg.Logger.Debug("an instance has refused to start a replica", "instance", e.To, "why", declined)
	}
}

// answeredBy returns the instance that has answered instead of the one that was asked, or zero.
func answeredBy(err error) nodeid.ID {
	if other, ok := errors.AsType[*OtherError](err); ok {
		return other.Answered
	}
	return nodeid.ID{}
}
