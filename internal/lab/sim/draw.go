package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/modes"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// draw draws the request of a call. If outer is not nil, the call is made under the lock of outer.
// If Config.Kinds and Config.Readers are zero, the request is for a mutex.
//
// Semaphores are nested only in jobs, see drawJob.
func draw(w *world, outer *call) client.Request {
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
		drawPath(w, &r)
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
		drawPermits(w, &r)
	case kind == 1:
		drawSeveral(w, &r)
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
func drawPermits(w *world, r *client.Request) {
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
func drawSeveral(w *world, r *client.Request) {
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
func drawPath(w *world, r *client.Request) {
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
func drawParts(w *world, outer *call) (client.Request, []modes.Part) {
	r := draw(w, outer)
	if w.cfg.Mixed == 0 || r.Terms != nil && len(r.Terms.Modes) > 0 || !w.chance(w.cfg.Mixed) {
		return r, nil
	}
	parts := drawMixedParts(w)
	a := modes.Expand(parts)
	t := &client.Terms{Keys: a.Keys[1:], Modes: a.Modes, Permits: a.Permits, Of: a.Of}
	if outer != nil {
		t.Under = outer.request()
	}
	r.Key, r.Terms = a.Keys[0], t
	return r, parts
}

// drawMixedParts draws one to three parts: single keys, and nodes of the tree that drawPath uses,
// each exclusive or shared.
func drawMixedParts(w *world) []modes.Part {
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

// drawJob makes c a job, or the next limit of the job of the outer call. A job has three nested
// limits, the narrowest first: one for each order, two for each tenant, and three in all. All jobs
// nest the same keys in the same order, so no job may be refused as a deadlock. A call of another
// kind neither asks for these keys nor waits under them.
func drawJob(w *world, c *call) {
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

// drawOptions draws the options of a call: the time after which the hold ends by itself, an expiry
// delay, and a notice of waiters.
func drawOptions(w *world, c *call) {
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

// drawGrace gives some calls a grace. Half of their callers do not release the lock in doubt, but
// wait for the end of the doubt.
func drawGrace(w *world, c *call) {
	if c.upgrades() || !w.chance(w.cfg.Doubts) {
		return
	}
	terms := c.ownTerms()
	terms.Grace = w.between(w.cfg.TTL/4, longestGrace*w.cfg.TTL)
	c.own.patient = w.chance(0.5)
	if w.chance(0.7) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
}

// drawEntering draws a request of any kind, for the keys of the lock or for some of them.
func drawEntering(c *call, k *rand.Rand) client.Request {
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

// The longest expiry delay and the longest grace, in TTLs.
const (
	longestDelay = 4
	longestGrace = 8
)
