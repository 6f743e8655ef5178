package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Send queues f for a peer, without blocking. If there is no link and an address is given, Send
// starts a dial, and f waits for the dial. After a nil error, either f arrives in order, or the
// handler's Down is called. Raft messages may be dropped if too many are queued, because raft
// repeats them. The bytes are copied, but raft messages must not be changed afterwards. Send fails
// with ErrNoLink, ErrFull, ErrTooLarge or ErrClosed. While this node has no group, Send fails with
// ErrGroup. After an error, nothing of f is queued.
func (p *Port) Send(to nodeid.Endpoint, f Frame) error {
	if f.empty() {
		return nil
	}
	self := p.self.Load()
	if self.Group == 0 {
		return fmt.Errorf("%w: this node belongs to no group yet", ErrGroup)
	}
	l, err := p.linkFor(to)
	if err != nil {
		return err
	}
	dropped, err := l.queue.push(&f)
	p.counts.raftDropped.Add(uint64(dropped))
	return err
}

// Linked reports whether a stream with the instance is up, in either direction.
func (p *Port) Linked(instance nodeid.ID) bool {
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

func (p *Port) linkFor(to nodeid.Endpoint) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, ErrClosed
	}
	if l := p.links[to.ID]; l != nil {
		return l, nil
	}
	switch {
	case to.ID.IsZero() || to.ID == p.self.Load().Instance():
		return nil, fmt.Errorf("%w: instance %v is not a peer", ErrNoLink, to.ID)
	case to.Addr == "":
		return nil, fmt.Errorf("%w: no address is known for instance %v", ErrNoLink, to.ID)
	case len(p.links) >= p.config.Links:
		return nil, fmt.Errorf("%w: %d links are open", ErrFull, len(p.links))
	}
	if err := p.dials.paused(to.Addr, to.ID); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLink, err)
	}
	l := p.newLink(to.ID, Identity{Instance: to.ID, Addr: to.Addr})
	ctx, cancel := context.WithCancel(p.ctx)
	l.abandon = cancel
	p.tasks.Go(func() {
		defer cancel()
		p.dial(ctx, l, to.Addr)
	})
	return l, nil
}

// newLink registers a link in the state dialing. The caller holds mu.
func (p *Port) newLink(instance nodeid.ID, peer Identity) *link {
	l := &link{
		port: p, instance: instance, self: p.self.Load().Instance(), queue: newQueue(&p.config), peer: peer,
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
func (p *Port) detach(l *link) {
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
func (p *Port) cutOff(l *link, reason error) {
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
func (p *Port) finalize(l *link) {
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
