package sim

import (
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// This file owns the stays of a process, as the shell in package client does.

const freeStays = 2 // the largest number of free stays of a process

// keptStay is a granted request of the stays.
type keptStay struct {
	key         string
	group       uint64
	first, last lockfsm.Token
	passes      int
	recalled    bool
}

// mayKeep reports whether the call may be sticky. Of the options, only Notice is allowed.
func (c *call) mayKeep() bool {
	t := c.req.Terms
	return c.outer == nil && (t == nil || len(t.Keys) == 0 && t.Permits == 0 && t.Of == 0 && t.Most == 0 &&
		len(t.Value) == 0 && t.Delay == 0 && t.Longest == 0 && t.Resume == 0 && t.Under == nil)
}

func (p *proc) window() client.Window {
	return client.Window{Now: p.m.clock(), Safe: p.safe, Deadline: p.deadline, TTL: p.ttl}
}

// askKept begins a sticky call. It returns false if the call must ask the group with an ordinary
// request.
func (c *call) askKept() bool {
	p := c.p
	c.pass = client.StayCaller{Key: c.req.Key, Try: c.req.Try, Caller: c}
	answer := p.stays.Lock(p.window(), &c.pass)
	c.kept = answer != client.StayOrdinary
	p.carry()
	switch answer {
	case client.StayOrdinary:
		p.w.watch.stats.Ordinary++
		return false
	case client.StayGranted:
		c.passed()
	case client.StayHeld:
		c.failed(&client.HeldError{Key: c.req.Key, Token: c.pass.Token()})
	}
	return true
}

// passed handles the grant of a pass.
func (c *call) passed() {
	if k := c.p.kept[c.p.stays.Request(&c.pass)]; k == nil {
		c.p.w.broken("%v call %d gets a pass, and no stay was granted", c.p, c.id)
	} else {
		c.stay = *k
		k.passes++
		c.granted(c.pass.Token(), 0)
	}
}

// unlockKept ends a pass. The reading of the clock decides whether the lock was held until now.
func (c *call) unlockKept() {
	p := c.p
	w := p.window()
	var err error
	if !w.Now.Before(p.deadline) {
		err = client.ErrLost
	}
	p.w.watch.frees(c)
	p.stays.Unlock(w, &c.pass)
	p.carry()
	c.released(err)
}

func (c *call) cancelKept() {
	c.p.stays.Cancel(c.p.window(), &c.pass)
	c.p.carry()
}

// request returns the request of the group under which c holds its lock.
func (c *call) request() *client.Request {
	if c.kept {
		if r := c.p.stays.Request(&c.pass); r != nil {
			return r
		}
	}
	return &c.req
}

// carry delivers the news of the stays, and posts their commands.
func (p *proc) carry() {
	s := p.stays
	for len(s.Commands)+len(s.News) > 0 {
		p.tellCallers()
		commands := s.Commands
		s.Commands = nil
		for i := range commands {
			p.w.watch.commands(p, &commands[i])
			p.inClient(func(now clock.Time) { p.client.Stay(now, &commands[i]) })
		}
	}
}

func (p *proc) tellCallers() {
	s := p.stays
	for i := range s.News {
		n := &s.News[i]
		c := n.Caller.Caller.(*call)
		switch {
		case n.Granted:
			c.passed()
		case n.Wanted:
			if c.wantsNotice() {
				c.wanted()
			}
		case n.Behind != nil:
		case n.Lost:
			c.lost(n.Err)
		default:
			c.failed(n.Err)
		}
	}
	s.News = s.News[:0]
}

// keptDo passes the commands of f directly to the core, in a turn of the client.
func (p *proc) keptDo(now clock.Time, f func(*client.Stays)) {
	f(p.stays)
	commands := p.stays.Commands
	p.stays.Commands = nil
	for i := range commands {
		p.w.watch.commands(p, &commands[i])
		p.client.Stay(now, &commands[i])
	}
	p.carry()
}

// stayOutcome passes an outcome of the core to the stays.
func (p *proc) stayOutcome(o *client.Outcome) {
	p.w.watch.stay(p, o)
	p.stays.Outcome(p.window(), o)
	p.carry()
}

// held returns the number of held locks. A free stay does not count.
func (p *proc) held() int {
	free, _, _ := p.stays.Counts()
	return max(0, p.client.Status(p.m.clock()).Held-free)
}
