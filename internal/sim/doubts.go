package sim

import (
	"math/rand/v2"

	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/lockfsm"
)

// This file is about holds with a grace: their draws, their callers, and the judge of holds that are
// good again after a doubt.

// longestGrace is the longest grace, in TTLs.
const longestGrace = 8

// drawDoubts has its own random numbers. Three quarters of the seeds have no holds with a grace.
func drawDoubts(seed uint64) float64 {
	if seed%64 < 48 {
		return 0
	}
	return 0.2 + 0.6*rand.New(rand.NewPCG(seed, 0x646f7562)).Float64()
}

// drawGrace gives some calls a grace. Half of their callers do not release the lock in doubt, but
// wait for the end of the doubt.
func (w *world) drawGrace(c *call) {
	if !w.chance(w.cfg.Doubts) {
		return
	}
	terms := c.ownTerms()
	terms.Grace = w.between(w.cfg.TTL/4, longestGrace*w.cfg.TTL)
	c.patient = w.chance(0.5)
	if w.chance(0.7) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
}

func (c *call) mayDoubt() bool { return c.req.Terms != nil && c.req.Terms.Grace > 0 }

// waitsInDoubt reports whether the caller postpones its release until the doubt ends.
func (c *call) waitsInDoubt() bool {
	c.postponed = c.doubt && c.patient
	return c.postponed
}

func (c *call) doubted() {
	if c.stage == holds {
		c.p.w.watch.doubts(c)
	}
}

func (c *call) good() {
	if c.stage != holds {
		return
	}
	c.p.w.watch.regains(c)
	if c.postponed {
		c.postponed = false
		c.p.w.after(c.p.w.between(0, c.hold+1), c.release)
	}
}

// doubts observes that a client marks a hold as in doubt, before it publishes another deadline.
func (o *watch) doubts(c *call) {
	o.stats.InDoubt++
	o.w.note("%v call %d is in doubt of %v", c.p, c.id, c.keys())
	if o.lapse(c.req.Key); !c.lapsed {
		c.lapsed, c.until = true, min(o.w.now, c.p.m.global(c.limit()))
	}
	c.doubt = true
}

// regains observes that a hold in doubt is good again. It must not overlap another belief, and the
// state must not have granted the key since.
func (o *watch) regains(c *call) {
	o.stats.Regained++
	o.w.note("%v call %d is good again with %d", c.p, c.id, c.token)
	if now := c.p.m.clock(); !c.doubt || !now.Before(c.limit()) {
		o.w.broken("%v call %d is good again at %v; in doubt: %v, until %v", c.p, c.id, now, c.doubt, c.limit())
	}
	c.doubt, c.lapsed, c.until = false, false, 0
	if c.forced {
		return // the client has not heard of it yet
	}
	terms := c.terms()
	for _, key := range c.keys() {
		if newest := o.newest[key]; terms.Alone() && newest > c.token {
			o.w.broken("%v call %d: %q is good again with token %d, and was granted with %d since", c.p, c.id, key,
				c.token, newest)
		}
		o.lapse(key)
		o.believers[key] = append(o.believers[key], c)
		o.w.must(o.beliefs.Begin(key, c.caller(), terms, o.w.now))
	}
	o.expect(c.p)
	o.write(c)
}

// notMarked checks, when a client has published a later deadline, that the hold of a call is not
// visible as held before the client has confirmed it.
func (o *watch) notMarked(c *call) {
	if c.mayDoubt() && c.lapsed && !c.doubt && c.stage == holds && c.p.m.clock().Before(c.limit()) {
		o.w.broken("%v call %d: a renewal is published, and the doubt of %v is not marked", c.p, c.id, c.keys())
	}
}

func (o *watch) grants(key string, e *history.Event) {
	if o.newest == nil {
		o.newest = map[string]lockfsm.Token{}
	}
	o.newest[key] = max(o.newest[key], e.Token)
}
