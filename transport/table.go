package transport

import (
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// table holds the links of a port, at most one to each instance. It uses base.mu.
type table struct {
	*base
	number uint64 // number of the last hello that this node sent for a link
	links  map[nodeid.ID]*link
	dying  map[nodeid.ID]*link // for each instance, the last ended link whose Down has not returned
}

// Linked reports whether a stream with the instance is up, in either direction.
func (p *Port) Linked(instance nodeid.ID) bool { return p.linked(instance) }

func (p *table) linked(instance nodeid.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.links[instance]
	return l != nil && l.state == up
}

// Met returns the identity from an instance's hello at the beginning of the current stream, or
// false if no stream is up.
func (p *Port) Met(instance nodeid.ID) (Identity, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.links[instance]; l != nil && l.state == up {
		return l.met, true
	}
	return Identity{}, false
}

// newLink registers a link in the state dialing. The caller holds mu.
func (p *table) newLink(instance nodeid.ID, peer Identity) *link {
	l := &link{
		port: p.base, instance: instance, self: p.self.Load().Instance(), queue: newQueue(&p.config), peer: peer,
		settled: make(chan struct{}), done: make(chan struct{}), abandon: func() {},
	}
	if before := p.dying[instance]; before != nil {
		l.before = before.done
	}
	p.links[instance] = l
	return l
}

// detach removes a link from the table. The caller holds mu and must ensure that finalize is
// called.
func (p *table) detach(l *link) {
	if l.state == dialing {
		close(l.settled)
	}
	l.state = ended
	if p.links[l.instance] == l {
		delete(p.links, l.instance)
		p.dying[l.instance] = l
	}
}

// cutOff ends a link. Queued data is sent within linger, and arriving data is discarded. The caller
// holds mu.
func (p *table) cutOff(l *link, reason error) {
	l.mute.Store(true)
	if l.reason == nil {
		l.reason = reason
	}
	was := l.state
	p.detach(l)
	if was == dialing {
		l.abandon()
		p.tasks.Go(func() { p.finalize(l) })
		return
	}
	l.queue.end(nil)
	if l.reaper == nil {
		l.reaper = time.AfterFunc(linger, l.stream.kill)
	}
}

// finalize calls Down. It is the last step of each link, after its last frame was delivered.
func (p *table) finalize(l *link) {
	if l.before != nil {
		<-l.before
	}
	p.mu.Lock()
	if p.links[l.instance] == l {
		p.detach(l)
		if l.dialed != "" {
			p.dials.linked(l.dialed, l.instance, time.Since(l.born) < youngLink, l.reason)
		}
	}
	if l.reaper != nil {
		l.reaper.Stop()
	}
	reason := l.reason
	p.mu.Unlock()
	l.queue.drop()
	p.config.Handler.Down(l.peer, reason)
	p.mu.Lock()
	if p.dying[l.instance] == l {
		delete(p.dying, l.instance)
	}
	p.mu.Unlock()
	close(l.done)
}
