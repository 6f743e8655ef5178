package transport

import wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"

// Identify changes what this node says about itself. With another Key a new life begins: all connections end, those for questions and
// those that were accepted too, as does everything that waits on links after at most a second, and no frame that comes on them reaches
// the handler any more (a call that has begun may still be running). Otherwise the peers on links are told, ahead of anything sent later.
func (p *Port) Identify(self Self) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.self.Swap(&self)
	if p.shut {
		return
	}
	if old.Instance() == self.Instance() {
		for _, l := range p.links {
			if l.state == up {
				l.queue.say(self.standing())
			}
		}
		return
	}
	for _, l := range p.links {
		p.expel(l, ErrNoLink)
	}
	for instance := range p.backoff {
		p.forgive(instance)
	}
	if bug("connections-outlive-a-life") {
		return
	}
	for addr, s := range p.shared {
		delete(p.shared, addr) // keep sees it
		if s.d != nil {
			s.d.kill()
		}
	}
	p.listener.closeCalls()
}

// standing is what may change while a link is up.
func (s *Self) standing() *wire.Standing {
	return &wire.Standing{Group: s.Group, Raft: s.Raft, Addr: s.Addr}
}
