package cluster

import (
	"context"

	"github.com/mortise-lock/mortise/cluster/founding"
)

// task sends a question of the core on its own helper goroutine, for at most a second. Answers that
// arrive in a later incarnation are dropped.
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
			c.in.postOfLife(func() { c.own.core.StatusReplied(c.now(), e, reply, err == nil) })
		case e.Body == nil:
			err := net.Probe(ctx, e.Addr, e.To)
			c.in.postOfLife(func() { c.finished(e, outcomeOfError(err), nil) })
		default:
			answer, _, err := net.Ask(ctx, e.Addr, e.To, e.Body)
			c.in.postOfLife(func() { c.finished(e, outcomeOf(answer, err), answer) })
		}
	})
}

func (c *Cluster) finished(e Task, outcome founding.Outcome, answer []byte) {
	if declined := c.own.core.Done(c.now(), e, outcome, answer); declined != "" {
		c.cfg.Logger.Debug("an instance has refused to start a replica", "instance", e.To, "why", declined)
	}
}
