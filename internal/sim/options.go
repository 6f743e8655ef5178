package sim

import (
	"time"

	"github.com/mortise-lock/mortise/session/client"
)

// The longest expiry delay and the longest grace, in TTLs.
const (
	longestDelay = 4
	longestGrace = 8
)

// options draws the options of a call: the time after which the hold ends by itself, an expiry
// delay, and a notice of waiters.
func (w *world) options(c *call) {
	if c.upgrades() || !w.chance(w.cfg.Options) {
		return // an upgrade has the options of its hold
	}
	t := c.ownTerms()
	if w.chance(0.3) {
		t.Longest = w.between(time.Millisecond, w.cfg.TTL)
		c.hold = w.between(0, 2*t.Longest)
	}
	if w.chance(0.5) && !c.upgradable() {
		t.Delay = w.between(time.Millisecond, longestDelay*w.cfg.TTL).Round(time.Millisecond)
		c.detaches = w.chance(0.2)
		if w.chance(0.4) { // long enough that the caller's process may crash meanwhile
			c.hold = max(c.hold, w.between(0, w.cfg.TTL))
		}
	}
	// The caller releases the lock when it is notified of a waiter, or after six TTLs at the
	// latest.
	if t.Notice = w.chance(0.5); t.Notice && c.outer == nil && w.chance(0.5) {
		c.hold = w.between(0, 6*w.cfg.TTL)
	}
}

func (c *call) ownTerms() *client.Terms {
	if c.req.Terms == nil {
		c.req.Terms = &client.Terms{}
	}
	return c.req.Terms
}

// drawDowngrade lets some holders of an exclusive lock make it shared at some time.
func (c *call) drawDowngrade() {
	w := c.p.w
	if w.cfg.Downgrade > 0 && !c.kept && !c.modal() && !c.upgrades() && c.terms().Alone() && w.chance(w.cfg.Downgrade) {
		w.after(w.between(0, c.hold+1), c.downgrade)
	}
}

func (c *call) wantsNotice() bool { return c.req.Terms != nil && c.req.Terms.Notice }

// downgraded is called when the caller is told that its lock is shared, or why it is not.
func (c *call) downgraded(err error) { c.p.w.watch.lowered(c, err) }

// wanted is called when the caller is notified that another call waits for its lock. The caller
// releases the lock soon.
func (c *call) wanted() {
	if c.stage != holds {
		return
	}
	w := c.p.w
	w.watch.wanted(c)
	w.after(w.between(0, 5*time.Millisecond), c.release)
}

// drawGrace gives some calls a grace. Half of their callers do not release the lock in doubt, but
// wait for the end of the doubt.
func (w *world) drawGrace(c *call) {
	if c.upgrades() || !w.chance(w.cfg.Doubts) {
		return
	}
	terms := c.ownTerms()
	terms.Grace = w.between(w.cfg.TTL/4, longestGrace*w.cfg.TTL)
	c.patient = w.chance(0.5)
	if w.chance(0.7) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
}

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
