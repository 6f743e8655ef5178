package transport

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc/peer"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// welcome serves a connection on which a peer begins a link; raw is what was accepted, conn what is spoken on. It is the link's sender.
func (p *Port) welcome(raw, conn net.Conn) {
	defer raw.Close()
	s := newStream(p, conn, func() { raw.Close() })
	// In the context stands what stands in that of a call, so that whoever asks finds the connection.
	ctx, cancel := context.WithCancel(peer.NewContext(p.ctx, &peer.Peer{Addr: raw.RemoteAddr()}))
	defer cancel()
	if c, ok := acceptedOf(ctx); ok {
		s.gone = c.gone
	}
	timer := time.AfterFunc(p.config.DialTimeout, s.kill)
	first, err := s.recv()
	if !timer.Stop() || err != nil {
		return
	}
	// Whoever is welcome waits for our hello, and is heard only after it. If he gives up before, that is seen at once.
	welcomed, heard := make(chan *link, 1), make(chan struct{})
	p.tasks.Go(func() {
		defer close(heard)
		if _, err := s.in.Peek(1); err != nil {
			cancel()
		}
		if l := <-welcomed; l != nil {
			l.receive(s, first)
			if !bug("sender-left-behind") {
				s.kill() // the sender may be waiting for a reader that is gone
			}
			l.queue.drop()
		}
	})
	l := p.introduce(ctx, s, first.hello)
	welcomed <- l
	if l == nil {
		patience := time.AfterFunc(linger, s.kill)
		<-heard // he hangs up when he has read why
		patience.Stop()
		return
	}
	pulse := startPulse(l, s)
	l.transmit(s)
	<-heard // the peer hangs up when it has heard all
	pulse.stop()
	raw.Close()
	p.bury(l)
}

// introduce decides about a peer's stream, and returns the link that it is now. One that is not welcome is told why.
func (p *Port) introduce(ctx context.Context, s *stream, hello *wire.Hello) *link {
	refusal := p.judge(ctx, hello)
	if refusal == nil {
		l, no := p.accept(ctx, hello, s)
		if no == nil {
			return l
		}
		refusal = no
	}
	p.noteRefusal("transport: refused a stream", ctx, hello, refusal)
	_ = s.send(&wire.Frame{Refusal: refusal})
	_ = s.mark(goodbye)
	return nil
}
