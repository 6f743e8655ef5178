package sim

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/session/stay"
)

// caller acts for one call.
type caller struct {
	*call
	p *proc
	s *ownClient

	// outer is the call under whose lock this call was made. inner is the call that was made under
	// the lock of this call.
	outer, inner *caller
	raises       *caller // of an upgrade: the call whose hold it upgrades, see upgrade
}

// record returns the record of a call, or nil.
func record(c *caller) *call {
	if c == nil {
		return nil
	}
	return c.call
}

// under makes c a call under the lock of another one, which may be nil.
func (c *caller) under(outer *caller) { c.outer, c.call.outer = outer, record(outer) }

func (c *caller) ask() {
	c.s.callers, c.s.calls = append(c.s.callers, c), append(c.s.calls, c.call)
	c.p.w.watch.calls.asks(c.call)
	if c.sticky && c.askKept() {
		return
	}
	c.req.Before(c.s.stays)
	c.s.stays.Carry(posting{c.s})
	c.s.inClient(func(now clock.Time) { c.s.core.Acquire(now, &c.req) })
}

// soonAgain is the chance that a caller makes another call for the same key and mode soon after a
// sticky one.
const soonAgain = 0.7

// The method next ends this call. Unless once is set, it waits for a while and then releases the
// lock of the outer call, or makes another call if there is no outer call.
func (c *caller) next() {
	p := c.p
	c.stage = over
	c.s.callers, c.s.calls = without(c.s.callers, c), without(c.s.calls, c.call)
	if o := c.outer; c.once {
		return
	} else if o == nil {
		think, previous := p.w.cfg.Think, (*caller)(nil)
		if c.sticky && p.w.chance(soonAgain) {
			think, previous = p.w.cfg.Hold, c
		}
		p.w.after(p.w.between(0, think), func() { c.s.caller(previous) })
	} else if o.inner == c {
		o.inner = nil
		p.w.after(p.w.between(0, 5*time.Millisecond), o.release)
	}
}

func (c *caller) leave() {
	if c.stage != waits || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.kept && c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.leave)
		return
	}
	c.p.w.watch.calls.fails(c.call, "context", 0)
	if c.kept {
		c.cancelKept()
	} else {
		c.s.inClient(func(now clock.Time) { c.s.core.Cancel(now, &c.req) })
	}
	c.next()
}

func (c *caller) failed(err error) {
	if c.stage != waits {
		return
	}
	var held *client.HeldError
	var deadlock *client.DeadlockError
	switch {
	case errors.As(err, &held):
		c.p.w.watch.calls.fails(c.call, "held", held.Token)
	case errors.As(err, &deadlock):
		c.p.w.watch.calls.refused(c.call, deadlock)
		c.p.w.watch.calls.fails(c.call, "deadlock", 0)
	default:
		if errors.Is(err, client.ErrClosed) {
			c.p.w.watch.calls.unclosed(c.call)
		}
		c.p.w.watch.calls.fails(c.call, err.Error(), 0)
	}
	c.next()
}

func (c *caller) granted(token lockfsm.Token, until clock.Time) {
	if c.stage != waits {
		return // the caller has canceled before the grant arrived
	}
	w := c.p.w
	c.stage, c.token, c.group, c.ends = holds, token, c.p.group, until
	c.session = c.s.status().Session
	w.watch.calls.gets(c.call)
	c.drawDowngrade()
	c.drawHandle()
	if c.drawUpgrade() {
		return
	}
	if 0 < c.tier && c.tier < tiers {
		w.after(0, c.nest)
		return
	}
	if c.mayNest() && w.chance(w.cfg.Nest) {
		w.after(w.between(0, c.hold), c.nest)
		return
	}
	w.after(c.hold, c.release)
}

func (c *caller) release() {
	if c.stage != holds || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.release)
		return
	}
	if c.waitsInDoubt() {
		return
	}
	c.abandonInner()
	if c.kept {
		c.unlockKept()
	} else if c.detaches {
		c.p.w.watch.calls.detaches(c.call)
		c.s.inClient(func(now clock.Time) { c.s.core.Detach(now, &c.req, "") })
	} else {
		c.p.w.watch.calls.frees(c.call)
		c.s.inClient(func(now clock.Time) { c.s.core.Release(now, &c.req) })
	}
	c.next()
}

func (c *caller) downgrade() {
	if c.stage != holds || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.downgrade)
		return
	}
	if c.handle != nil && !c.handle.reads {
		return // as Lock.Downgrade, which fails then
	}
	if c.believes() {
		c.p.w.watch.calls.lowers(c.call)
		to := c.lowered
		c.s.inClient(func(now clock.Time) { c.s.core.Downgrade(now, &c.req, to) })
	}
}

func (c *caller) lost(why error) {
	switch c.stage {
	case waits: // granted and lost in one turn
		c.p.w.watch.calls.fails(c.call, "lost", 0)
		c.next()
	case holds:
		c.p.w.watch.calls.loses(c.call, why)
		c.abandonInner() // the context of the inner call has ended
		c.next()
	}
}

func (c *caller) released(err error) {
	if !c.detaches { // the log shows the result of a detach
		c.p.w.watch.calls.released(c.call, err)
	}
}

// askKept begins a sticky call. It returns false if the call must ask the group with an ordinary
// request.
func (c *caller) askKept() bool {
	s := c.s
	c.pass = stay.Caller{Key: c.req.Key, Shared: c.req.Shared(), Try: c.req.Try, Caller: c}
	answer := s.stays.Lock(s.window(), &c.pass)
	c.kept = answer != stay.Ordinary
	s.stays.Carry(posting{s})
	switch answer {
	case stay.Ordinary:
		s.p.w.stats.Ordinary++
		return false
	case stay.Passed:
		c.passed()
	case stay.Held:
		c.failed(&client.HeldError{Key: c.req.Key, Token: c.pass.Token()})
	}
	return true
}

// passed handles the grant of a pass.
func (c *caller) passed() {
	if k := c.s.kept[c.s.stays.Request(&c.pass)]; k == nil {
		c.p.w.broken("%v call %d gets a pass, and no stay was granted", c.p, c.id)
	} else {
		c.stay = k
		k.passes++
		c.granted(c.pass.Token(), 0)
	}
}

// referred makes the call ask the group with an ordinary request.
func (c *caller) referred() {
	s := c.s
	s.p.w.stats.Referred++
	c.kept = false
	s.inClient(func(now clock.Time) {
		c.req.Before(s.stays)
		s.stays.Carry(direct{posting{s}})
		s.core.Acquire(now, &c.req)
	})
}

// unlockKept ends a pass. The reading of the clock decides whether the lock was held until now.
func (c *caller) unlockKept() {
	s := c.s
	w := s.window()
	var err error
	if !w.Now.Before(s.deadline) {
		err = client.ErrLost
	}
	s.p.w.watch.calls.frees(c.call)
	s.stays.Unlock(w, &c.pass)
	s.stays.Carry(posting{s})
	c.released(err)
}

func (c *caller) cancelKept() {
	c.s.stays.Cancel(c.s.window(), &c.pass)
	c.s.stays.Carry(posting{c.s})
}

// nest makes a call under the lock of c. When that call has ended, or is refused as a deadlock, the
// lock of c is released.
func (c *caller) nest() {
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
func (c *caller) abandonInner() {
	inner := c.inner
	if c.inner = nil; inner == nil {
		return
	}
	c.p.w.after(c.p.w.between(0, time.Millisecond), func() {
		inner.leave()
		inner.release()
	})
}

// drawUpgrade lets most holders of an upgradable lock upgrade it. Some of them release the lock
// while it is being upgraded, or is upgraded. Some take another lock first, under which they
// upgrade: the upgrade then has two owners.
func (c *caller) drawUpgrade() bool {
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
func (c *caller) upgrade(raises *caller) {
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
		u.under(c)
		u.raises, u.call.raises, c.inner = raises, raises.call, u
		c.s.begin(u)
	}
}

// drawDowngrade lets some holders of a lock with a key that is not shared make it shared at some
// time.
func (c *caller) drawDowngrade() {
	w := c.p.w
	if w.cfg.Downgrade > 0 && !c.kept && c.lowers() && w.chance(w.cfg.Downgrade) {
		w.after(w.between(0, c.hold+1), c.downgrade)
	}
}

// downgraded is called when the caller is told that its lock is shared, or why it is not.
func (c *caller) downgraded(err error) { c.p.w.watch.calls.lowered(c.call, err) }

// wanted is called when the caller is notified that another call waits for its lock. The caller
// releases the lock soon.
func (c *caller) wanted() {
	if c.stage != holds {
		return
	}
	w := c.p.w
	w.watch.calls.wanted(c.call)
	w.after(w.between(0, 5*time.Millisecond), c.release)
}

// waitsInDoubt reports whether the caller postpones its release until the doubt ends.
func (c *caller) waitsInDoubt() bool {
	c.own.postponed = c.own.doubt && c.own.patient
	return c.own.postponed
}

func (c *caller) doubted() {
	if c.stage == holds {
		c.p.w.watch.calls.doubts(c.call)
	}
}

func (c *caller) good() {
	if c.stage != holds {
		return
	}
	c.p.w.watch.calls.regains(c.call)
	if c.own.postponed {
		c.own.postponed = false
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
func (c *caller) drawHandle() {
	w, k := c.p.w, c.p.w.entering
	if c.upgradable() || c.upgrades() || k.Float64() >= handleChance {
		return
	}
	want := drawEntering(c.call, k)
	begins := time.Duration(k.Float64() * float64(c.hold+1))
	lasts := time.Duration(k.Float64() * float64(c.hold+1))
	w.after(begins, func() { c.enter(want, lasts) })
}

func (c *caller) enter(r client.Request, lasts time.Duration) {
	if c.stage != holds || c.handle != nil || c.own.doubt || c.forced || c.p.w.now < c.p.m.pausedUntil || !c.believes() {
		return
	}
	has, want := c.grant(), r.Grant()
	if !covered(&has, &want) {
		return // such a request asks the group; see nest
	}
	c.handle = &handle{want: want, reads: want.Reads()}
	c.p.w.watch.calls.enters(c.call)
	c.p.w.after(lasts, func() { c.p.w.watch.calls.exits(c.call) })
}
