package transport

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const linkWaits = 10 * time.Second

func (p *table) dial(ctx context.Context, l *link, addr string) {
	if l.before != nil {
		<-l.before
	}
	var s *stream
	wait, cancel := context.WithTimeout(ctx, linkWaits)
	err := p.attempt(wait, ctx, addr, l.instance, func() (err error) {
		s, err = p.reach(ctx, l, addr)
		return err
	})
	cancel()
	if err != nil {
		p.mu.Lock()
		lost := l.state == dialing // otherwise the peer's stream was accepted, or l was cut off
		if lost {
			l.reason, l.born = err, time.Now()
			p.detach(l)
		}
		p.mu.Unlock()
		if lost {
			p.finalize(l)
		}
		return
	}
	defer context.AfterFunc(ctx, s.kill)()
	keepalive, sent := startKeepalive(l, s), make(chan struct{})
	p.tasks.Go(func() {
		defer close(sent)
		l.transmit(s)
	})
	l.receive(s)
	keepalive.stop()
	s.kill()
	l.queue.drop()
	<-sent
	p.finalize(l)
}

func (p *table) reach(ctx context.Context, l *link, addr string) (*stream, error) {
	raw, err := p.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	limitUnheard(raw)
	ctx, cancel := p.handshakes(ctx)
	defer cancel()
	s, err := p.secure(ctx, raw, addr)
	if err != nil {
		return nil, err
	}
	self, number, err := p.claim(l)
	if err != nil {
		s.kill()
		return nil, err
	}
	who, err := p.introduce(ctx, s, addr, self, wire.Hello_LINK, l.instance, number)
	if err == nil {
		err = p.raise(l, addr, s, self, who)
	}
	if err != nil {
		s.kill()
		return nil, err
	}
	return s, nil
}

func (p *table) claim(l *link) (self *Self, number uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.state != dialing {
		return nil, 0, errAbandoned
	}
	l.greeted = true
	p.number++
	return p.self.Load(), p.number, nil
}

// raise sets the state of l to up with the stream s, unless a stream from the peer was accepted
// meanwhile.
func (p *table) raise(l *link, addr string, s *stream, self *Self, who *introduction) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.state != dialing {
		return errAbandoned
	}
	l.dialed = addr
	l.rise(who, s)
	if now := p.self.Load(); now != self {
		l.queue.say(now.standing())
	}
	return nil
}

func (p *table) linkFor(to nodeid.Endpoint) (*link, error) {
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
