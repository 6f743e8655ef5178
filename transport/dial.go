package transport

import (
	"context"
	"errors"
	"time"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// errAbandoned means that the link has another stream or is no longer wanted.
var errAbandoned = errors.New("transport: dial abandoned")

const linkWaits = 10 * time.Second

func (p *Port) dial(ctx context.Context, l *link, addr string) {
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

func (p *Port) reach(ctx context.Context, l *link, addr string) (*stream, error) {
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

func (p *Port) claim(l *link) (self *Self, number uint64, err error) {
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
func (p *Port) raise(l *link, addr string, s *stream, self *Self, who *introduction) error {
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
