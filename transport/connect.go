package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Both sides' settings stand together: gRPC's server would cut off a client that pings more often than the server's policy allows.
const (
	streamWindow     = 8 << 20 // static: gRPC's own estimate of the window costs half the latency of a small frame
	connWindow       = 16 << 20
	keepaliveTime    = 10 * time.Second // the least that a gRPC client can do
	keepaliveTimeout = 5 * time.Second
	keepaliveMinimum = 5 * time.Second // what our server tolerates
	headerBytes      = 16 << 10
)

var errSpent = errors.New("transport: this connection is over") // a dialed connection is used once

// dialed is one connection that we opened, with the gRPC client on it. gRPC never dials itself: its back-off would make a question wait
// for an attempt, and it would not tell a refused connection from a silent one.
type dialed struct {
	wire.PeerClient
	addr  string
	cc    *grpc.ClientConn
	probe *probe
}

// connect dials addr within the port's dial timeout. Who is there is not known before the first call; explain says what its error means.
func (p *Port) connect(ctx context.Context, addr string) (*dialed, error) {
	ctx, cancel := context.WithTimeout(ctx, p.config.DialTimeout)
	defer cancel()
	raw, err := p.config.Dial(ctx, addr)
	if err != nil {
		if isRefused(err) {
			return nil, fmt.Errorf("%w: %s: nobody listens there", ErrRefused, addr)
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, err)
	}
	if p.config.TLS != nil {
		secured, err := clientTLS(ctx, raw, addr, p.config.TLS)
		if err != nil {
			raw.Close()
			return nil, err
		}
		raw = secured
	}
	probe := &probe{Conn: raw, gone: make(chan struct{})}
	var used atomic.Bool
	cc, err := grpc.NewClient("passthrough:///"+addr, append(p.clientOptions(),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errSpent
			}
			return probe, nil
		}))...)
	if err != nil {
		raw.Close()
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, err)
	}
	return &dialed{PeerClient: wire.NewPeerClient(cc), addr: addr, cc: cc, probe: probe}, nil
}

func (p *Port) clientOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), // TLS, if any, is done by connect
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		// gRPC waits max(back-off, minimum) for the handshake, so the back-off, which nothing here waits for, must not exceed it.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: p.config.DialTimeout, Multiplier: 1, MaxDelay: p.config.DialTimeout}, MinConnectTimeout: p.config.DialTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(p.config.MessageBytes), grpc.MaxCallSendMsgSize(p.config.MessageBytes)),
		grpc.WithMaxHeaderListSize(headerBytes),
		grpc.WithSharedWriteBuffer(true),
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableHealthCheck(),
		grpc.WithNoProxy(),
		grpc.WithIdleTimeout(0),
	}
}

// close ends the connection and everything on it.
func (d *dialed) close() {
	d.cc.Close()
	d.probe.Close() // if gRPC never came to use it
}

// explain says what the failure of a call on this connection means. ctx is the caller's.
func (d *dialed) explain(ctx context.Context, err error) error {
	code := status.Code(err)
	text := status.Convert(err).Message()
	switch {
	case errors.Is(err, io.EOF):
		code, text = codes.Unavailable, "the stream ended"
	case d.probe.foreign():
		return fmt.Errorf("%w: %s does not speak our protocol or refuses our TLS", ErrForeign, d.addr)
	case code == codes.Unimplemented:
		return fmt.Errorf("%w: %s speaks gRPC but is no mortise: %s", ErrForeign, d.addr, clip(text))
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w: %s: %w", ErrSilent, d.addr, context.Cause(ctx))
	}
	return fmt.Errorf("%w: %s: %s: %s", ErrSilent, d.addr, code, clip(text))
}

// clientTLS makes the TLS connection over raw. What proves that the other side is not one of us is ErrForeign; a connection that
// breaks or stays silent proves nothing.
func clientTLS(ctx context.Context, raw net.Conn, addr string, config *tls.Config) (net.Conn, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2"}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(addr)
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil || silence(err) {
			return nil, fmt.Errorf("%w: %s: TLS handshake: %w", ErrSilent, addr, err)
		}
		return nil, fmt.Errorf("%w: %s: TLS handshake: %w", ErrForeign, addr, err)
	}
	if got := conn.ConnectionState().NegotiatedProtocol; got != "h2" {
		return nil, fmt.Errorf("%w: %s: TLS without HTTP/2", ErrForeign, addr)
	}
	return conn, nil
}

// silence reports whether err is a connection that broke, rather than a word from the other side.
func silence(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op != "remote error" // crypto/tls says so of an alert
}

// probe watches the first bytes that come from the other side, and when the connection dies.
type probe struct {
	net.Conn
	gone  chan struct{} // closed once nothing can be read any more
	once  sync.Once
	head  []byte // the first bytes, of the one goroutine that reads
	alien atomic.Bool
}

const (
	frameHead = 9                      // bytes of an HTTP/2 frame header
	lastWords = 100 * time.Millisecond // for the reader, after a write failed
)

// Read is net.Conn's.
func (c *probe) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if len(c.head) < frameHead && n > 0 {
		c.head = append(c.head, b[:min(n, frameHead-len(c.head))]...)
		if !startsHTTP2(c.head) {
			c.alien.Store(true)
		}
	}
	if err != nil {
		if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
			c.alien.Store(true) // TLS 1.3 refuses our certificate only after the handshake
		}
		c.once.Do(func() { close(c.gone) })
	}
	return n, err
}

// Write is net.Conn's. When it fails gRPC closes the connection at once; but the other side may have said why it hung up, as TLS 1.3 does
// about our certificate, and the reader should find it.
func (c *probe) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-c.gone:
		case <-timer.C:
		}
	}
	return n, err
}

// Close is net.Conn's.
func (c *probe) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}

// foreign reports whether what came cannot be from a mortise that accepts us.
func (c *probe) foreign() bool { return c.alien.Load() }

// startsHTTP2 reports whether head, a prefix of what a server sends first, can be that of an HTTP/2 server: a SETTINGS frame.
func startsHTTP2(head []byte) bool {
	if len(head) > 0 && head[0] != 0 { // SETTINGS of 64 KiB or more
		return false
	}
	if len(head) > 3 && head[3] != 4 {
		return false
	}
	for i := 5; i < len(head); i++ {
		if head[i] != 0 { // stream 0
			return false
		}
	}
	return true
}
