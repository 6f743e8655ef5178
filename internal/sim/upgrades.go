package sim

import (
	"github.com/mortise-lock/mortise/internal/check"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

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
	return c.outer.token
}

// drawUpgrade lets most holders of an upgradable lock upgrade it. Some of them release the lock
// while it is being upgraded, or is upgraded.
func (c *call) drawUpgrade() bool {
	w := c.p.w
	if !c.upgradable() || !w.chance(0.8) {
		return false
	}
	w.after(w.between(0, c.hold+1), c.upgrade)
	if w.chance(0.2) {
		w.after(w.between(0, 2*c.hold+1), c.release)
	}
	return true
}

// upgrade makes the call for the upgrade of c. When that call has ended, the lock of c is released.
func (c *call) upgrade() {
	p := c.p
	switch until := p.m.pausedUntil; {
	case c.stage != holds || p.dead:
	case p.w.now < until:
		p.w.after(until-p.w.now, c.upgrade)
	case p.w.quiet || p.leaving || c.inner != nil:
		c.release()
	default:
		t := c.req.Terms
		u := p.newCall(client.Request{Key: c.req.Key, Terms: &client.Terms{Under: &c.req, Upgrades: true,
			Notice: t.Notice, Grace: t.Grace, Longest: t.Longest}})
		u.outer, c.inner = c, u
		p.begin(u)
	}
}

// believe observes that a caller believes that it holds a key.
func (o *watch) believe(key string, c *call, terms check.Terms) {
	if c.upgrades() {
		o.w.must(o.beliefs.BeginBeside(key, c.caller(), terms, c.outer.caller(), o.w.now))
		return
	}
	o.w.must(o.beliefs.Begin(key, c.caller(), terms, o.w.now))
}

// reads returns the call as which c reads. The holder of an upgradable lock has read what its
// upgrade has written.
func (c *call) reads() *call {
	if c.raised != nil {
		return c.raised
	}
	return c
}

// remembered returns the terms with which the judge of acknowledged grants remembers a grant. For
// this judge an upgrade is like a reader, because its hold goes on.
func (c *call) remembered(i int) check.Terms {
	if c.upgrades() {
		return reader()
	}
	return c.termsOf(i)
}
