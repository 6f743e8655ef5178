package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// put sends a question to another instance. The question waits while maxAsks questions, or a
// question to the same address, are under way. A silent address therefore occupies at most one
// slot.
func (c *Cluster) put(q founding.Question) {
	o := &c.own
	if o.busy >= maxAsks || o.asking[q.Addr] {
		o.backlog = append(o.backlog, q)
		return
	}
	o.busy++
	o.asking[q.Addr] = true
	asked := c.now()
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		answer, from, err := c.cfg.Net.Ask(ctx, q.Addr, q.To, q.Body)
		c.in.post(func() { c.result(q, asked, from, answer, err) })
	})
}

func (c *Cluster) result(q founding.Question, asked time.Duration, from nodeid.ID, answer []byte, err error) {
	o := &c.own
	o.busy--
	delete(o.asking, q.Addr)
	for i, next := range o.backlog {
		if !o.asking[next.Addr] {
			o.backlog = slices.Delete(o.backlog, i, i+1)
			c.put(next)
			break
		}
	}
	outcome := outcomeOf(answer, err)
	if why, ok := errors.AsType[*ForeignError](err); ok {
		answer = []byte(why.Why)
	}
	if why, ok := errors.AsType[*SilentError](err); ok {
		answer = []byte(why.Why)
	}
	o.core.Result(c.now(), asked, q, outcome, from, answer)
}

func outcomeOf(answer []byte, err error) founding.Outcome {
	if err == nil && len(answer) == 0 {
		return founding.Silent
	}
	return outcomeOfError(err)
}

func outcomeOfError(err error) founding.Outcome {
	switch {
	case err == nil:
		return founding.Answered
	case errors.Is(err, ErrRefused):
		return founding.Refused
	case errors.Is(err, ErrForeign):
		return founding.Foreign
	case errors.Is(err, ErrOther):
		return founding.Other
	}
	return founding.Silent
}
