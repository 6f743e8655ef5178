package sim

import (
	"errors"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session"
)

// This file is the people: callers that lock, hold, unlock and give up.

// call is one call of one caller, from its beginning to its last news.
type call struct {
	p     *proc
	id    uint64
	req   session.Request
	token lockfsm.Token
	group uint64 // in which it was granted
	stage stage
	hold  time.Duration // how long it will hold

	lapsed bool // its belief has ended by the clock
	until  time.Duration
}

type stage uint8

const (
	waits stage = iota
	holds
	over // the caller has gone on
)

// caller makes one call.
func (p *proc) caller() {
	w := p.w
	if p.dead || w.quiet || p.leaving {
		return
	}
	w.numbers++
	c := &call{p: p, id: w.numbers}
	c.req = session.Request{Key: w.cfg.key(w.rng.IntN(w.cfg.Keys)), Try: w.chance(w.cfg.Try), Caller: c}
	c.hold = w.between(0, w.cfg.Hold)
	if w.chance(w.cfg.Long) {
		c.hold = w.between(0, 3*w.cfg.TTL)
	}
	p.calls = append(p.calls, c)
	w.watch.asks(c)
	p.inClient(func(now clock.Time) { p.client.Acquire(now, &c.req) })
	if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, w.cfg.TTL), c.leave)
	} else if w.chance(w.cfg.Cancel) {
		w.after(w.between(0, 5*time.Millisecond), c.leave)
	}
}

// next lets the caller go on after a while.
func (c *call) next() {
	p := c.p
	c.stage = over
	for i, o := range p.calls {
		if o == c {
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
			break
		}
	}
	p.w.after(p.w.between(0, p.w.cfg.Think), func() { p.caller() })
}

// leave is the end of the caller's context while it waits.
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
	var held *session.HeldError
	if errors.As(err, &held) {
		c.p.w.watch.fails(c, "held", held.Token)
	} else {
		c.p.w.watch.fails(c, err.Error(), 0)
	}
	c.next()
}

// granted is where the caller begins to believe, unless it has left, or its first look at the clock tells it that the lock is lost again.
func (c *call) granted(token lockfsm.Token) {
	if c.stage != waits {
		return // the grant crosses the cancel: nobody here will ever believe in it
	}
	w := c.p.w
	c.stage, c.token, c.group = holds, token, c.p.group
	w.watch.gets(c)
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
	c.p.w.watch.frees(c)
	c.p.inClient(func(now clock.Time) { c.p.client.Release(now, &c.req) })
	c.next()
}

func (c *call) lost() {
	switch c.stage {
	case waits: // granted and lost in one turn
		c.p.w.watch.fails(c, "lost", 0)
		c.next()
	case holds:
		c.p.w.watch.loses(c)
		c.next()
	}
}

func (c *call) released(err error) {
	c.p.w.watch.released(c, err)
}
