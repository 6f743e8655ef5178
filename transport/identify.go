package transport

// Identify changes what this node says about itself. With another Instance all links end, as does everything that waits on them after
// at most a second, and no frame that comes on them reaches the handler any more (a call that has begun may still be running).
// Otherwise the peers are told, ahead of anything sent later.
func (p *Port) Identify(identity Identity) {
	if old := p.self.Load(); old.Addr != identity.Addr || old.Cluster != identity.Cluster {
		defer p.gossip.restart()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.self.Swap(&identity)
	if p.shut {
		return
	}
	if old.Instance == identity.Instance && old.Cluster == identity.Cluster {
		for _, l := range p.links {
			if l.state == up {
				l.queue.say(identity.greet(l.instance, 0))
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
}
