package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

var errSpent = errors.New("transport: this connection is over") // a dialed connection is used once

// dialed is a dialed connection for calls, with its gRPC client. gRPC never dials, because
// questions would wait for its backoff, and because it does not report a refused connection.
type dialed struct {
	wire.PeerClient
	addr  string
	peer  Identity
	kill  func()
	cc    *grpc.ClientConn
	probe *probe
}

// connectTime limits connecting. The dial timeout limits the handshakes that follow.
const connectTime = time.Second

func (p *base) open(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	raw, err := p.config.Dial(ctx, addr)
	if err != nil {
		if isRefused(err) {
			return nil, fmt.Errorf("%w: %s: no process listens there", ErrRefused, addr)
		}
		if noRoute(err) {
			return nil, fmt.Errorf("%w: %s: %w: %w", ErrSilent, addr, ErrNoRoute, err)
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, err)
	}
	repeatEvenly(raw)
	return raw, nil
}

func (p *base) handshakes(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := p.config.DialTimeout
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("no hello within %v", limit))
}

func (p *base) secure(ctx context.Context, raw net.Conn, addr string) (_ *stream, err error) {
	kill := func() { raw.Close() } // with TLS, raw is the guarded connection
	if p.config.TLS == nil {
		s := newStream(p, raw, nil, kill)
		s.peer, err = p.tierOf(nil)
		return s, err
	}
	watched := &guardedConn{Conn: raw, guard: p.guard}
	raw = watched
	conn, err := clientTLS(ctx, raw, addr, p.config.TLS.ClientTLS())
	if err != nil {
		if errors.Is(err, ErrForeign) || errors.Is(err, ErrPlain) { // log nothing for a lost connection
			p.notices.warn("transport: no secure connection to a peer", "addr", addr, "why", p.config.TLS.Explain(err))
		}
		raw.Close()
		return nil, err
	}
	secure := conn.ConnectionState()
	peer, err := p.serverOf(addr, &secure)
	if err != nil {
		raw.Close()
		return nil, err
	}
	s := newStream(p, conn, &secure, kill)
	s.peer = peer
	p.guard.add(watched, addr, &secure, peer.NotAfter)
	return s, nil
}

// connect dials addr, exchanges hellos, and returns a gRPC client. If intended is not zero, connect
// fails if another instance answers. The caller must have a ticket for the dial.
func (p *base) connect(ctx context.Context, self *Self, addr string, intended nodeid.ID) (*dialed, error) {
	raw, err := p.open(ctx, addr)
	if err != nil {
		return nil, err
	}
	ctx, cancel := p.handshakes(ctx)
	defer cancel()
	s, err := p.secure(ctx, raw, addr)
	if err != nil {
		return nil, err
	}
	who, err := p.introduce(ctx, s, addr, self, wire.Hello_CALLS, intended, 0)
	if err != nil {
		s.kill()
		return nil, err
	}
	probe := &probe{Conn: &unread{Conn: s.conn, in: s.in}, gone: make(chan struct{})}
	var used atomic.Bool
	cc, err := grpc.NewClient("passthrough:///peer", append(p.clientOptions(),
		grpc.WithAuthority(addr), // the value that gRPC otherwise derives from the target
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errSpent
			}
			return probe, nil
		}))...)
	if err != nil {
		s.kill()
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, err)
	}
	return &dialed{PeerClient: wire.NewPeerClient(cc), addr: addr, peer: who.peer, kill: s.kill, cc: cc,
		probe: probe}, nil
}

func (d *dialed) close() {
	d.cc.Close()
	d.probe.Close() // needed if gRPC never used the connection
}

func (d *dialed) explain(ctx context.Context, err error) error {
	code := status.Code(err)
	text := status.Convert(err).Message()
	switch {
	case errors.Is(err, io.EOF):
		code, text = codes.Unavailable, "the stream ended"
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s: %w", ErrSilent, d.addr, context.Cause(ctx))
	}
	if code == codes.DeadlineExceeded {
		return fmt.Errorf("%w: %s: %w", ErrSilent, d.addr, context.DeadlineExceeded)
	}
	if end := d.probe.ended(); end != nil {
		text = end.Error()
	}
	return fmt.Errorf("%w: %s: %s: %s", ErrSilent, d.addr, code, clip(text))
}
