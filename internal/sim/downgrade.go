package sim

import (
	"github.com/mortise-lock/mortise/internal/check"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/history"
)

// This file contains the callers that make their exclusive locks shared, and what the watch
// observes of them.

// drawDowngrade lets some holders of an exclusive lock make it shared at some time.
func (c *call) drawDowngrade() {
	w := c.p.w
	if w.cfg.Downgrade > 0 && !c.kept && c.terms().Alone() && w.chance(w.cfg.Downgrade) {
		w.after(w.between(0, c.hold+1), c.downgrade)
	}
}

func (c *call) downgrade() {
	if c.stage != holds || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.downgrade)
		return
	}
	if c.believes() {
		c.p.w.watch.lowers(c)
		c.p.inClient(func(now clock.Time) { c.p.client.Downgrade(now, &c.req) })
	}
}

// lowers observes that a caller acts as a reader from now on.
func (o *watch) lowers(c *call) {
	o.w.note("%v call %d downgrades %v", c.p, c.id, c.keys())
	o.write(c)
	c.lowered = true
	o.record(c.p, history.Event{Kind: history.Downgrade, Op: c.id})
	for _, key := range c.keys() {
		o.beliefs.Lower(key, c.caller())
	}
}

// lowered observes that the hold of a caller is shared in the state.
func (o *watch) lowered(c *call, err error) {
	o.stats.Downgraded++
	if err != nil || !o.shared[c.token] {
		o.w.broken("%v call %d is told that token %d is shared: %v; in the state: %v", c.p, c.id, c.token, err,
			o.shared[c.token])
	}
}

// becomesShared observes that the state makes a hold shared.
func (o *watch) becomesShared(g *group, e *history.Event) {
	o.shared[e.Token] = true
	for _, key := range append([]string{e.Key}, e.Keys...) {
		o.w.must(g.fifo.Lowered(key, e.Place))
	}
}

// resumesShared observes that a shared hold is resumed. A caller that resumes the hold of a former
// writer does not ask for a mode, and gets the mode of the hold.
func (o *watch) resumesShared(e *history.Event) {
	if (check.Terms{Permits: e.Permits, Of: e.Of}) == reader {
		o.shared[e.Token] = true
	}
}

var reader = check.Terms{Permits: 1}
