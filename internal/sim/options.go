package sim

import (
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// This file is what callers want of a hold beside the lock: that it ends by itself, that it leaves
// a delay, that its holder is told of waiters. watchholds.go has the judges.

// longestDelay is for at most how many TTLs a lock stays taken after its holder's session has
// expired.
const longestDelay = 4

// options draws what a call wants.
func (w *world) options(c *call) {
	if !w.chance(w.cfg.Options) {
		return
	}
	if c.req.Terms == nil {
		c.req.Terms = &client.Terms{}
	}
	t := c.req.Terms
	if w.chance(0.3) {
		t.Longest = w.between(time.Millisecond, w.cfg.TTL)
		c.hold = w.between(0, 2*t.Longest)
	}
	if w.chance(0.5) {
		t.Delay = w.between(time.Millisecond, longestDelay*w.cfg.TTL).Round(time.Millisecond)
		c.detaches = w.chance(0.2)
		if w.chance(0.4) { // long enough for its process to die meanwhile
			c.hold = max(c.hold, w.between(0, w.cfg.TTL))
		}
	}
	// The caller holds until it is told, or has waited long enough for that.
	if t.Notice = w.chance(0.5); t.Notice && c.outer == nil && w.chance(0.5) {
		c.hold = w.between(0, 6*w.cfg.TTL)
	}
}

func (c *call) wantsNotice() bool { return c.req.Terms != nil && c.req.Terms.Notice }

// wanted is called when another call waits for what this one holds, which soon releases it.
func (c *call) wanted() {
	if c.stage != holds {
		return
	}
	w := c.p.w
	w.watch.wanted(c)
	w.after(w.between(0, 5*time.Millisecond), c.release)
}
