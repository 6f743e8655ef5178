package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
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

// drawDowngrade lets some holders of a lock with a key that is not shared make it shared at some
// time.
func (c *call) drawDowngrade() {
	w := c.p.w
	if w.cfg.Downgrade > 0 && !c.kept && c.lowers() && w.chance(w.cfg.Downgrade) {
		w.after(w.between(0, c.hold+1), c.downgrade)
	}
}

// lowers reports whether a downgrade changes a mode of the call's keys. An upgradable lock stays as
// it is, because its upgrade ends with a downgrade.
func (c *call) lowers() bool {
	g := c.grant()
	return !c.upgrades() && !g.Semaphore() && !g.Reads() && !slices.Contains(g.Modes, lockfsm.ModeU)
}

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

// The callers enter their locks again, as requests under the context of a lock do. The rule of the
// product decides whether a request may enter. The watch then treats the handle as a belief of its
// own beside its hold: no other caller may hold what the handle excludes.

// handleChance is the chance that a holder makes a request under its lock that may enter it.
const handleChance = 0.5

// drawHandle lets some holders enter their lock again. It has its own random numbers, so that the
// rest of a run does not depend on it. A lock that can be upgraded is not entered, because its
// upgrade excludes the reads of its handles.
func (c *call) drawHandle() {
	w, k := c.p.w, c.p.w.entering
	if c.upgradable() || c.upgrades() || k.Float64() >= handleChance {
		return
	}
	want := c.drawEntering(k)
	begins := time.Duration(k.Float64() * float64(c.hold+1))
	lasts := time.Duration(k.Float64() * float64(c.hold+1))
	w.after(begins, func() { c.enter(want, lasts) })
}

// drawEntering draws a request of any kind, for the keys of the lock or for some of them.
func (c *call) drawEntering(k *rand.Rand) client.Request {
	keys := c.keys()
	r := client.Request{Key: keys[k.IntN(len(keys))], Terms: &client.Terms{}}
	switch k.IntN(6) {
	case 0:
	case 1:
		r.Terms.Permits = 1
	case 2:
		r.Key, r.Terms.Keys = keys[0], keys[1:]
	case 3:
		r.Key, r.Terms.Keys, r.Terms.Permits = keys[0], keys[1:], 1
	case 4:
		r.Terms.Permits, r.Terms.Of = 1, 3
	case 5: // the last node of the lock, or a node below it, for reading or writing
		p := modes.Part{Key: keys[len(keys)-1], Tree: true}
		if k.IntN(2) == 0 {
			p.Mode = modes.Shared
		}
		if k.IntN(2) == 0 {
			p.Key += "/9"
		}
		a := modes.Expand([]modes.Part{p})
		r.Key, r.Terms.Keys, r.Terms.Modes = a.Keys[0], a.Keys[1:], a.Modes
	}
	return r
}

func (c *call) enter(r client.Request, lasts time.Duration) {
	if c.stage != holds || c.handle != nil || c.doubt || c.forced || c.p.w.now < c.p.m.pausedUntil || !c.believes() {
		return
	}
	has, want := c.grant(), r.Grant()
	if !covered(&has, &want) {
		return // such a request asks the group; see nest
	}
	c.handle = &handle{want: want, reads: want.Reads()}
	c.p.w.watch.enters(c)
	c.p.w.after(lasts, func() { c.p.w.watch.exits(c) })
}

// covered reports whether a hold covers a request for keys, or for the path to one node.
func covered(has, want *lockfsm.Grant) bool {
	keys, mode := append([]string{want.Key}, want.Keys...), modes.Exclusive
	if want.Reads() {
		mode = modes.Shared
	}
	if want.Modes != nil {
		keys = keys[len(keys)-1:]
	}
	return !want.Semaphore() && !slices.ContainsFunc(keys, func(key string) bool {
		p := modes.Part{Key: key, Mode: mode, Tree: want.Modes != nil}
		return !p.CoveredBy(has)
	})
}
