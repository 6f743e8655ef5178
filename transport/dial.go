package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

var errAbandoned = errors.New("transport: dial abandoned") // never shown: the link has another stream, or none is wanted

// dial makes the stream of l, and is its receiver goroutine then.
func (p *Port) dial(ctx context.Context, l *link, addr string) {
	if l.before != nil {
		<-l.before
	}
	s, first, err := p.reach(ctx, l, addr)
	if err != nil {
		p.mu.Lock()
		lost := l.state == dialing // else the peer's dial won, or the link was expelled
		if lost {
			l.reason, l.born = err, time.Now()
			p.detach(l)
			p.punish(l, addr)
		}
		p.mu.Unlock()
		if lost {
			p.bury(l)
		}
		return
	}
	defer context.AfterFunc(ctx, s.kill)()
	pulse, sent := startPulse(l, s), make(chan struct{})
	p.tasks.Go(func() {
		defer close(sent)
		l.transmit(s)
	})
	l.receive(s, first)
	pulse.stop()
	s.kill()
	l.queue.drop()
	<-sent
	p.bury(l)
}

// reach dials addr, greets, and makes l a link. The frame that it returns came with the answer.
func (p *Port) reach(ctx context.Context, l *link, addr string) (*stream, *received, error) {
	conn, raw, err := p.open(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	s := newStream(p, conn, func() { raw.Close() })
	defer context.AfterFunc(ctx, s.kill)() // abandoned
	timer := time.AfterFunc(p.config.DialTimeout, s.kill)
	first, err := p.greetPeer(ctx, s, l, addr)
	if !timer.Stop() {
		err = fmt.Errorf("%w: %s: no hello within %v", ErrSilent, addr, p.config.DialTimeout)
	}
	if err == nil {
		err = p.raise(l, addr, s, first.hello)
	}
	if err != nil {
		s.kill()
		return nil, nil, err
	}
	return s, first, nil
}

// greetPeer exchanges hellos on a new connection.
func (p *Port) greetPeer(ctx context.Context, s *stream, l *link, addr string) (*received, error) {
	p.mu.Lock()
	if l.state != dialing {
		p.mu.Unlock()
		return nil, errAbandoned
	}
	self := p.self.Load()
	l.greeted = true
	p.number++
	hello := self.greet(l.instance, p.number)
	p.mu.Unlock()
	_ = s.send(&wire.Frame{Hello: hello}) // recv knows why
	first, err := s.recv()
	if err != nil {
		return nil, s.explain(ctx, addr, err)
	}
	if first.refusal != nil {
		return nil, refused(addr, l.instance, first.refusal)
	}
	if err := self.answered(addr, l.instance, first.hello); err != nil {
		return nil, err
	}
	return first, nil
}

// raise makes l a link over the stream that we dialed, unless the peer's was accepted meanwhile.
func (p *Port) raise(l *link, addr string, s *stream, hello *wire.Hello) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.state != dialing {
		return errAbandoned
	}
	l.dialed = addr
	l.rise(identity(hello), hello.Number, s)
	l.queue.say(p.self.Load().greet(l.instance, 0)) // we may have changed since our hello
	return nil
}
