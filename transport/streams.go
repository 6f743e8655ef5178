package transport

import (
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// streamsQueued is the time after which a stream that is not received from Streams is refused.
const streamsQueued = 5 * time.Second

// DialStream opens a byte stream to an address. ctx limits only the opening of the stream.
// DialStream fails with the errors of Remote.Invoke.
func (g *Gossip) DialStream(ctx context.Context, addr string) (net.Conn, error) {
	p := g.port
	s, err := p.borrow(ctx, addr)
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(p.ctx)
	stop := context.AfterFunc(ctx, cancel)
	stream, err := g.hail(life, s.d)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		c := newStreamConn(p.base, s.d.peer.Addr, stream.Send, stream.Recv)
		if g.start(c, func() { g.carry(c, stream, cancel, s) }) {
			return c, nil
		}
		err = ErrClosed
	}
	cancel()
	p.release(s)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, context.Cause(ctx))
	}
	return nil, err
}

func (g *Gossip) hail(ctx context.Context, d *dialed) (stream grpc.BidiStreamingClient[wire.Bytes, wire.Bytes],
	err error) {
	if stream, err = d.Conn(ctx); err != nil {
		return nil, d.explain(ctx, err)
	}
	_ = stream.Send(&wire.Bytes{}) // if this fails, Recv returns the error
	first, err := stream.Recv()
	switch {
	case err != nil:
		return nil, d.explain(ctx, err)
	case first.Refusal != nil:
		return nil, refused(d.addr, first.Refusal)
	}
	return stream, nil
}

func (g *Gossip) start(c *streamConn, run func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.port.mu.Lock()
	defer g.port.mu.Unlock()
	if g.port.shut {
		return false
	}
	g.conns[c] = struct{}{}
	g.port.tasks.Go(func() {
		run()
		g.mu.Lock()
		delete(g.conns, c)
		g.mu.Unlock()
	})
	return true
}

func (g *Gossip) carry(c *streamConn, stream grpc.BidiStreamingClient[wire.Bytes, wire.Bytes],
	cancel context.CancelFunc, s *shared) {
	defer g.port.release(s)
	defer cancel()
	g.port.tasks.Go(c.read)
	c.write(stream.Context())
	_ = stream.CloseSend()
	timer := time.NewTimer(linger) // time for the peer to read the data in flight
	defer timer.Stop()
	select {
	case <-c.over:
	case <-timer.C:
	case <-stream.Context().Done():
	}
}
