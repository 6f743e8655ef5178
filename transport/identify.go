package transport

import "context"

// Identify changes this node's identity. If self has another Key, a new incarnation begins, and all
// connections end. Data that is queued on links is lost if it cannot be sent within a second. No
// further frame from these links reaches the handler, but a call of the handler may still be
// running. If self has the same Key, each link sends the change before any later data.
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
		return // the next question dials a new connection, because self has changed
	}
	for _, l := range p.links {
		p.cutOff(l, ErrNoLink)
	}
	p.dials.forget(false)
	p.endLife()
	p.life, p.endLife = context.WithCancel(p.ctx)
	p.listener.closeCalls()
}
