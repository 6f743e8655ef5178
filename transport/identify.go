package transport

import (
	"context"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Identify changes what this node says about itself. With another Key a new life begins: all
// connections end, those for questions and those that were accepted too, as does everything that
// waits on links after at most a second, and no frame that comes on them reaches the handler any
// more (a call that has begun may still be running). Otherwise the peers on links are told, ahead
// of anything sent later.
func (p *Port) Identify(self Self) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.self.Load()
	same := old.Instance() == self.Instance()
	if same && old.Group == self.Group && old.Raft == self.Raft && old.Addr == self.Addr {
		return
	}
	p.self.Store(&self)
	if p.shut {
		return
	}
	if same {
		for _, l := range p.links {
			if l.state == up {
				l.queue.say(self.standing())
			}
		}
		return // connections for questions say it when they are next dialed, which is at the next question
	}
	for _, l := range p.links {
		p.expel(l, ErrNoLink)
	}
	p.dials.forget(false)
	p.endLife()
	p.life, p.endLife = context.WithCancel(p.ctx)
	p.listener.closeCalls()
}

// standing is what may change while a link is up.
func (s *Self) standing() *wire.Standing {
	return &wire.Standing{Group: s.Group, Raft: s.Raft, Addr: s.Addr}
}
