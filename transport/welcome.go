package transport

import (
	"context"
	"net"
	"time"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// welcome serves a connection on which a peer opens a link. raw is the accepted connection. The
// goroutine of welcome is the link's sender.
func (p *table) welcome(raw net.Conn, s *stream, who *introduction) {
	defer raw.Close()
	ctx, cancel := context.WithCancel(p.ctx)
	defer cancel()
	// The peer waits for this side's hello, so frames are read only after it is sent. Until then
	// Peek only notices that the peer has closed the connection.
	welcomed, heard := make(chan *link, 1), make(chan struct{})
	p.tasks.Go(func() {
		defer close(heard)
		if _, err := s.in.Peek(1); err != nil {
			cancel()
		}
		if l := <-welcomed; l != nil {
			l.receive(s)
			s.kill() // the sender may be blocked because the peer reads nothing
			l.queue.drop()
		}
	})
	l := p.admit(ctx, s, who)
	welcomed <- l
	if l == nil {
		patience := time.AfterFunc(linger, s.kill)
		<-heard // the peer closes the connection when it has read the reason
		patience.Stop()
		return
	}
	keepalive := startKeepalive(l, s)
	l.transmit(s)
	<-heard // the peer closes the connection when it has read everything
	keepalive.stop()
	raw.Close()
	p.finalize(l)
}

// admit decides whether the stream of a peer becomes a link, answers the peer's hello, and returns
// the link or nil. A peer that wanted to reach another instance learns from this node's hello that
// it has reached this one.
func (p *table) admit(ctx context.Context, s *stream, who *introduction) *link {
	self := p.self.Load()
	if !who.intended.IsZero() && who.intended != self.Instance() {
		_ = p.answer(s, self, who, 0)
		_ = s.mark(kindClose)
		return nil
	}
	accepted, refusal := p.accept(ctx, who, s)
	if refusal == nil {
		_ = p.answer(s, accepted.self, who, accepted.number) // if sending fails, the stream breaks
		return accepted.link
	}
	p.noteRefusal("transport: refused a stream", who.peer, s.conn.RemoteAddr(), refusal)
	_ = s.greet(&wire.Greeting{Refusal: refusal})
	return nil
}
