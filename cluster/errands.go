package cluster

import "context"

// errand puts a question of the core's. Each has a helper goroutine of its own and ends after a second.
// What comes of it in a later life means nothing.
func (c *Cluster) errand(e Errand) {
	if step := e.Prepare; step != nil {
		c.cfg.Logger.Debug("asking an instance for a replica", "raft", idText(step.ID), "instance", step.Instance, "why", step.Why)
	}
	body := e.Body
	if body == nil {
		body = appendProbe(nil)
	}
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		answer, _, err := c.cfg.Net.Ask(ctx, e.Addr, e.To, body)
		c.in.postOfLife(func() {
			if declined := c.own.core.Done(c.now(), e, outcomeOf(answer, err), answer); declined != "" {
				c.cfg.Logger.Debug("an instance has refused to start a replica", "instance", e.To, "why", declined)
			}
		})
	})
}
