package cluster

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-lock/mortise/cluster/birth"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

const (
	asksMax   = 64 // questions under way at a time
	askWithin = time.Second
)

// put asks one question as soon as fewer than asksMax are under way. Each has a goroutine of its own, so that an address that does not
// answer holds up nobody but itself.
func (c *Cluster) put(q birth.Question) {
	if c.own.busy >= asksMax {
		c.own.backlog = append(c.own.backlog, q)
		return
	}
	c.own.busy++
	asked := c.now()
	c.help(func() {
		ctx, cancel := context.WithTimeout(c.ctx, askWithin)
		defer cancel()
		answer, from, err := c.cfg.Net.Ask(ctx, q.Addr, q.To, q.Body)
		c.in.post(func() { c.result(q, asked, from, answer, err) })
	})
}

// result hands the outcome of a question to the core and asks the next that waits.
func (c *Cluster) result(q birth.Question, asked time.Duration, from nodeid.ID, answer []byte, err error) {
	o := &c.own
	o.busy--
	if len(o.backlog) > 0 {
		next := o.backlog[0]
		o.backlog = o.backlog[1:]
		c.put(next)
	}
	outcome := outcomeOf(answer, err)
	if outcome == birth.Answered {
		o.find.met(q.Addr, c.now())
	}
	o.core.Guide(c.cfg.Host.Guide())
	o.core.Result(c.now(), q.ID, asked, outcome, from, answer)
}

// outcomeOf sorts what Net.Ask returned.
func outcomeOf(answer []byte, err error) birth.Outcome {
	switch {
	case err == nil && len(answer) > 0:
		return birth.Answered
	case errors.Is(err, ErrRefused):
		return birth.Refused
	case errors.Is(err, ErrForeign):
		return birth.Foreign
	case errors.Is(err, ErrOther):
		return birth.Other
	}
	return birth.Silent
}
