package sim

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

type call struct {
	p     *proc
	id    uint64
	req   client.Request
	token lockfsm.Token
	group uint64 // group in which the lock was granted
	stage stage
	hold  time.Duration // how long the caller will hold the lock

	// outer is the call under whose lock this call was made. inner is the call that was made under
	// the lock of this call.
	outer, inner *call

	ends   clock.Time // when the handle ends the hold by itself; zero means never
	forced bool       // the state machine has ended the hold by force
	told   bool       // the caller was notified of a waiter

	detaches bool // the caller will detach the hold instead of releasing it
	once     bool // the caller makes no other call afterwards

	lapsed bool // the hold has ended by the caller's clock
	until  time.Duration
}

type stage uint8

const (
	waits stage = iota
	holds
	over // the call has ended
)

func (p *proc) caller() {
	if !p.dead && !p.w.quiet && !p.leaving {
		p.call(nil)
	}
}

func (p *proc) call(outer *call) *call {
	w := p.w
	c := p.newCall(w.draw(outer))
	c.outer = outer
	if w.chance(w.cfg.Long) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
	w.options(c)
	c.ask()
	if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, w.cfg.TTL), c.leave)
	} else if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, 5*time.Millisecond), c.leave)
	}
	return c
}

func (p *proc) newCall(r client.Request) *call {
	p.w.numbers++
	c := &call{p: p, id: p.w.numbers, req: r, hold: p.w.between(0, p.w.cfg.Hold)}
	c.req.Caller = c
	return c
}

func (c *call) ask() {
	c.p.calls = append(c.p.calls, c)
	c.p.w.watch.asks(c)
	c.p.inClient(func(now clock.Time) { c.p.client.Acquire(now, &c.req) })
}

// The method next ends this call. Unless once is set, it waits for a while and then releases the
// lock of the outer call, or makes another call if there is no outer call.
func (c *call) next() {
	p := c.p
	c.stage = over
	p.calls = without(p.calls, c)
	if o := c.outer; c.once {
		return
	} else if o == nil {
		p.w.after(p.w.between(0, p.w.cfg.Think), func() { p.caller() })
	} else if o.inner == c {
		o.inner = nil
		p.w.after(p.w.between(0, 5*time.Millisecond), o.release)
	}
}

func (c *call) leave() {
	if c.stage != waits || c.p.dead {
		return
	}
	c.p.w.watch.fails(c, "context", 0)
	c.p.inClient(func(now clock.Time) { c.p.client.Cancel(now, &c.req) })
	c.next()
}

func (c *call) failed(err error) {
	if c.stage != waits {
		return
	}
	var held *client.HeldError
	var deadlock *client.DeadlockError
	switch {
	case errors.As(err, &held):
		c.p.w.watch.fails(c, "held", held.Token)
	case errors.As(err, &deadlock):
		c.p.w.watch.refused(c, deadlock)
		c.p.w.watch.fails(c, "deadlock", 0)
	default:
		c.p.w.watch.fails(c, err.Error(), 0)
	}
	c.next()
}

func (c *call) granted(token lockfsm.Token, until clock.Time) {
	if c.stage != waits {
		return // the caller has canceled before the grant arrived
	}
	w := c.p.w
	c.stage, c.token, c.group, c.ends = holds, token, c.p.group, until
	w.watch.gets(c)
	if c.mayNest() && w.chance(w.cfg.Nest) {
		w.after(w.between(0, c.hold), c.nest)
		return
	}
	w.after(c.hold, c.release)
}

func (c *call) release() {
	if c.stage != holds || c.p.dead {
		return
	}
	if until := c.p.m.pausedUntil; c.p.w.now < until {
		c.p.w.after(until-c.p.w.now, c.release)
		return
	}
	c.abandonInner()
	if c.detaches {
		c.p.w.watch.detaches(c)
		c.p.inClient(func(now clock.Time) { c.p.client.Detach(now, &c.req, "") })
	} else {
		c.p.w.watch.frees(c)
		c.p.inClient(func(now clock.Time) { c.p.client.Release(now, &c.req) })
	}
	c.next()
}

func (c *call) lost(why error) {
	switch c.stage {
	case waits: // granted and lost in one turn
		c.p.w.watch.fails(c, "lost", 0)
		c.next()
	case holds:
		c.p.w.watch.loses(c, why)
		c.abandonInner() // the context of the inner call has ended
		c.next()
	}
}

func (c *call) released(err error) {
	if !c.detaches { // the log shows the result of a detach
		c.p.w.watch.released(c, err)
	}
}
