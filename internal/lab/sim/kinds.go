package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/check"
	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

const (
	pools     = 2 // semaphores
	deepest   = 2 // largest depth of calls under the lock of another call
	valueSize = 8
)

// draw draws the request of a call. If outer is not nil, the call is made under the lock of outer.
// If Config.Kinds and Config.Readers are zero, the request is for a mutex.
//
// Semaphores are nested only in jobs, see drawJob.
func (w *world) draw(outer *call) client.Request {
	cfg := &w.cfg
	r := client.Request{Key: lockName(w.rng.IntN(cfg.Keys)), Try: w.chance(cfg.Try)}
	if outer != nil {
		// A nested call for the key of the outer call can deadlock with itself. Drawing the key once
		// more makes this rarer, so that deadlocks among several calls occur too.
		if r.Key == outer.req.Key {
			r.Key = lockName(w.rng.IntN(cfg.Keys + 1))
		}
		r.Terms = &client.Terms{Under: outer.request()}
	}
	if cfg.Upgrades > 0 && w.chance(cfg.Upgrades) {
		if r.Terms == nil {
			r.Terms = &client.Terms{}
		}
		r.Terms.Modes = []lockfsm.Mode{lockfsm.ModeU}
		return r
	}
	if cfg.Paths > 0 && w.chance(cfg.Paths) {
		w.drawPath(&r)
		return r
	}
	reads := w.chance(cfg.Readers)
	if !reads && !w.chance(cfg.Kinds) {
		return r
	}
	if r.Terms == nil {
		r.Terms = &client.Terms{}
	}
	switch kind := w.rng.IntN(5); {
	case reads:
		r.Terms.Permits = 1
	case kind == 0 && outer == nil:
		w.drawPermits(&r)
	case kind == 1:
		w.drawSeveral(&r)
	case kind == 2:
		r.Terms.Most = 1 + uint32(w.rng.IntN(2))
		r.Terms.Value = make([]byte, w.rng.IntN(valueSize))
	default:
		r.Terms.Permits = 1
	}
	return r
}

// drawPermits draws a request for one or two permits of a semaphore. Sometimes it names another
// total of permits, or requests the key as a mutex.
func (w *world) drawPermits(r *client.Request) {
	r.Key = poolName(w.rng.IntN(pools))
	if w.chance(0.2) {
		r.Key, r.Terms.Keys = poolName(0), []string{poolName(1)}
	}
	if w.chance(0.1) {
		return
	}
	r.Terms.Of = 3 + uint32(w.rng.IntN(5)/4)
	r.Terms.Permits = 1 + uint32(w.rng.IntN(2))
}

// drawSeveral draws a request for two or three locks, some of them shared. It chooses from
// Config.Keys + 1 keys, one more than most other requests.
func (w *world) drawSeveral(r *client.Request) {
	keys := w.rng.Perm(w.cfg.Keys + 1)
	keys = keys[:min(2+w.rng.IntN(2), len(keys))]
	slices.Sort(keys)
	r.Key = lockName(keys[0])
	for _, k := range keys[1:] {
		r.Terms.Keys = append(r.Terms.Keys, lockName(k))
	}
	if w.chance(0.3) {
		r.Terms.Permits = 1
	}
}

// drawPath draws a request for a node of a tree, whose root is a key of its own.
func (w *world) drawPath(r *client.Request) {
	if r.Terms == nil {
		r.Terms = &client.Terms{}
	}
	t, above, node := r.Terms, lockfsm.ModeIX, lockfsm.ModeX
	if w.chance(0.4) {
		above, node = lockfsm.ModeIS, lockfsm.ModeS
	}
	path := lockName(w.cfg.Keys + 1)
	r.Key = path
	for range w.rng.IntN(3) {
		t.Modes = append(t.Modes, above)
		path += fmt.Sprintf("/%d", w.rng.IntN(2))
		t.Keys = append(t.Keys, path)
	}
	if t.Modes = append(t.Modes, node); len(t.Modes) == 1 && node == lockfsm.ModeX {
		t.Modes = nil // as package mortise does
	}
}

// drawParts draws the request of a call. If it is for parts with modes of their own, drawParts also
// returns the parts.
func (w *world) drawParts(outer *call) (client.Request, []modes.Part) {
	r := w.draw(outer)
	if w.cfg.Mixed == 0 || r.Terms != nil && len(r.Terms.Modes) > 0 || !w.chance(w.cfg.Mixed) {
		return r, nil
	}
	parts := w.mixed()
	a := modes.Expand(parts)
	t := &client.Terms{Keys: a.Keys[1:], Modes: a.Modes, Permits: a.Permits, Of: a.Of}
	if outer != nil {
		t.Under = outer.request()
	}
	r.Key, r.Terms = a.Keys[0], t
	return r, parts
}

// mixed draws one to three parts: single keys, and nodes of the tree that drawPath uses, each
// exclusive or shared.
func (w *world) mixed() []modes.Part {
	var parts []modes.Part
	for range 1 + w.rng.IntN(3) {
		p := modes.Part{Key: lockName(w.rng.IntN(w.cfg.Keys + 1)), Mode: modes.Mode(w.rng.IntN(2))}
		if p.Tree = w.chance(0.5); p.Tree {
			p.Key = lockName(w.cfg.Keys + 1)
			for range w.rng.IntN(3) {
				p.Key += fmt.Sprintf("/%d", w.rng.IntN(2))
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// readers returns the modes of the call's keys after a downgrade, as package mortise sends them. A
// resumed hold may be of a tree.
func (c *call) readers() []lockfsm.Mode {
	if c.parts != nil {
		return modes.Readers(c.parts)
	}
	g := c.grant()
	return g.Readers(c.modal())
}

// tiers is the number of limits of a job.
const tiers = 3

// drawJob makes c a job, or the next limit of the job of the outer call. A job has three nested
// limits, the narrowest first: one for each order, two for each tenant, and three in all. All jobs
// nest the same keys in the same order, so no job may be refused as a deadlock. A call of another
// kind neither asks for these keys nor waits under them.
func (w *world) drawJob(c *call) {
	if c.outer != nil && c.outer.tier == 0 || c.outer == nil && !w.chance(w.cfg.Jobs) {
		return
	}
	t := &client.Terms{}
	if c.tier = 1; c.outer != nil {
		c.tier = c.outer.tier + 1
		t.Under = c.outer.request()
	}
	switch c.req.Terms, c.parts = t, nil; c.tier {
	case 1:
		c.req.Key = fmt.Sprintf("order-%d", w.rng.IntN(4))
	case 2:
		order := c.outer.req.Key
		c.req.Key = fmt.Sprintf("tenant-%d", order[len(order)-1]%2)
		t.Permits, t.Of = 1, 2
	case tiers:
		c.req.Key = "all"
		t.Permits, t.Of = 1, 3
	}
}

func lockName(i int) string { return fmt.Sprintf("key-%d", i) }
func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

// grant returns what the call holds, or asks for. A call that resumes a hold knows that from its
// grant only. Before, it knows one key.
func (c *call) grant() lockfsm.Grant {
	g := c.req.Grant()
	if g.Key == "" {
		g = lockfsm.Grant{Key: c.req.Key}
	}
	if c.lowered != nil {
		g = g.Lowered(c.lowered)
	}
	return g
}

func (c *call) keys() []string {
	g := c.grant()
	return append([]string{g.Key}, g.Keys...)
}

// resumes returns the token of the hold that the call resumes. Zero means none.
func (c *call) resumes() lockfsm.Token {
	if c.req.Terms == nil {
		return 0
	}
	return c.req.Terms.Resume
}

func reader() check.Terms { return check.Terms{Permits: 1} }

// termsOf returns the terms of a key, whose index in the result of keys is i.
func (c *call) termsOf(i int) check.Terms {
	if g := c.grant(); len(g.Modes) > 0 {
		permits, of := g.Modes[i].Terms()
		return check.Terms{Permits: permits, Of: of}
	}
	return c.terms()
}

// modal reports whether the call has a mode for each key.
func (c *call) modal() bool { return len(c.grant().Modes) > 0 }

// terms returns the terms of all keys of a call without modes.
func (c *call) terms() check.Terms {
	g := c.grant()
	return check.Terms{Permits: g.Permits, Of: g.Of}
}

func (c *call) mayNest() bool {
	depth := 0
	for o := c.outer; o != nil; o = o.outer {
		depth++
	}
	return depth < deepest && c.req.Key[0] == lockName(0)[0]
}

// nest makes a call under the lock of c. When that call has ended, or is refused as a deadlock, the
// lock of c is released.
func (c *call) nest() {
	w := c.p.w
	switch until := c.p.m.pausedUntil; {
	case c.stage != holds || c.p.dead:
	case w.now < until:
		w.after(until-w.now, c.nest)
	case w.quiet || c.p.leaving || c.s.closes():
		c.release()
	default:
		c.inner = c.s.call(c, nil)
	}
}

// abandonInner ends the call that was made under the lock of c, because the lock of c has ended.
func (c *call) abandonInner() {
	inner := c.inner
	if c.inner = nil; inner == nil {
		return
	}
	c.p.w.after(c.p.w.between(0, time.Millisecond), func() {
		inner.leave()
		inner.release()
	})
}

// upgradable reports whether the call asks for a lock that it can upgrade.
func (c *call) upgradable() bool {
	t := c.req.Terms
	return t != nil && len(t.Modes) == 1 && t.Modes[0] == lockfsm.ModeU
}

// upgrades reports whether the call asks for an upgrade of the lock of c.outer.
func (c *call) upgrades() bool { return c.req.Terms != nil && c.req.Terms.Upgrades }

// upgraded returns the token of the hold that the call upgrades. Zero means none.
func (c *call) upgraded() lockfsm.Token {
	if !c.upgrades() {
		return 0
	}
	return c.raises.token
}

// drawUpgrade lets most holders of an upgradable lock upgrade it. Some of them release the lock
// while it is being upgraded, or is upgraded. Some take another lock first, under which they
// upgrade: the upgrade then has two owners.
func (c *call) drawUpgrade() bool {
	w := c.p.w
	switch {
	case c.crosses:
		w.after(w.between(0, c.hold+1), func() { c.upgrade(c.outer) })
		return true
	case !c.upgradable() || !w.chance(0.8):
		return false
	case w.cfg.Crossed > 0 && c.mayNest() && w.chance(w.cfg.Crossed):
		w.after(w.between(0, c.hold+1), func() {
			if c.nest(); c.inner != nil {
				c.inner.crosses = true
			}
		})
	default:
		w.after(w.between(0, c.hold+1), func() { c.upgrade(c) })
	}
	if w.chance(0.2) {
		w.after(w.between(0, 2*c.hold+1), c.release)
	}
	return true
}

// upgrade makes the call for the upgrade of the hold of raises, under the lock of c, which is the
// same or a lock that was taken under it. When that call has ended, the lock of c is released.
func (c *call) upgrade(raises *call) {
	p := c.p
	switch until := p.m.pausedUntil; {
	case c.stage != holds || p.dead:
	case p.w.now < until:
		p.w.after(until-p.w.now, func() { c.upgrade(raises) })
	case p.w.quiet || p.leaving || c.s.closes() || c.inner != nil || raises.stage != holds:
		c.release()
	default:
		t := raises.req.Terms
		u := c.s.newCall(client.Request{Key: raises.req.Key, Terms: &client.Terms{Under: &raises.req, Upgrades: true,
			Notice: t.Notice, Grace: t.Grace, Longest: t.Longest}})
		if c != raises {
			u.req.Terms.Inner = c.request()
		}
		u.outer, u.raises, c.inner = c, raises, u
		c.s.begin(u)
	}
}
