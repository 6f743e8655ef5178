package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

var errAbandoned = errors.New("transport: dial abandoned") // never shown: the link has another stream, or none is wanted

// dial makes the stream of l, and is its receiver goroutine then.
func (p *Port) dial(ctx context.Context, l *link, addr string) {
	if l.before != nil {
		<-l.before
	}
	c, first, err := p.reach(ctx, l, addr)
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
	sent := make(chan struct{})
	p.tasks.Go(func() {
		defer close(sent)
		l.transmit(c)
	})
	l.receive(c, first)
	c.kill()
	l.queue.drop()
	<-sent
	p.bury(l)
}

// reach dials addr, greets, and makes l a link. The frame that it returns came with the answer.
func (p *Port) reach(ctx context.Context, l *link, addr string) (*carrier, *received, error) {
	d, err := p.connect(ctx, addr)
	if err != nil {
		return nil, nil, err
	}
	stream, cancel := context.WithCancel(p.ctx)
	stop := context.AfterFunc(ctx, cancel) // abandoned
	timer := time.AfterFunc(p.config.DialTimeout, cancel)
	c, first, err := p.greetPeer(stream, l, d)
	if !timer.Stop() && err == nil {
		err = fmt.Errorf("%w: %s", ErrSilent, addr)
	}
	kill := func() { cancel(); d.close() }
	if err == nil {
		c.kill = kill
		err = p.raise(l, addr, c, first.hello)
	}
	stop()
	if err != nil {
		kill()
		return nil, nil, err
	}
	return c, first, nil
}

// greetPeer exchanges hellos on a new connection.
func (p *Port) greetPeer(ctx context.Context, l *link, d *dialed) (*carrier, *received, error) {
	stream, err := d.Link(ctx, grpc.ForceCodecV2(newCodec()))
	if err != nil {
		return nil, nil, d.explain(ctx, err)
	}
	p.mu.Lock()
	if l.state != dialing {
		p.mu.Unlock()
		return nil, nil, errAbandoned
	}
	self := p.self.Load()
	l.greeted = true
	p.number++
	hello := self.greet(l.instance, p.number)
	p.mu.Unlock()
	_ = stream.Send(&wire.Frame{Hello: hello}) // Recv knows why
	recv := receiver(stream)
	first, err := recv()
	if err != nil {
		return nil, nil, d.explain(ctx, err)
	}
	if first.refusal != nil {
		return nil, nil, refused(d.addr, l.instance, first.refusal)
	}
	if err := self.answered(d.addr, l.instance, first.hello); err != nil {
		return nil, nil, err
	}
	return &carrier{send: stream.Send, recv: recv, close: func() { _ = stream.CloseSend() }}, first, nil
}

// raise makes l a link over the stream that we dialed, unless the peer's was accepted meanwhile.
func (p *Port) raise(l *link, addr string, c *carrier, hello *wire.Hello) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.state != dialing {
		return errAbandoned
	}
	l.dialed = addr
	l.rise(identity(hello), hello.Number, c)
	l.queue.say(p.self.Load().greet(l.instance, 0)) // we may have changed since our hello
	return nil
}
