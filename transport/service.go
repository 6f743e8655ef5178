package transport

import (
	"context"
	"io"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// service answers what comes in on the port.
type service struct {
	wire.UnimplementedPeerServer
	port *Port
}

// noConnection is the end of a call whose connection is not one that this port accepted.
func noConnection() error { return status.Error(codes.Internal, "no connection") }

// firstOf reads the first message of a call. If it does not arrive in time, the connection is
// closed.
func firstOf[M any](p *Port, ctx context.Context, recv func() (*M, error)) (*M, error) {
	conn, ok := acceptedOf(ctx)
	if !ok {
		return nil, noConnection()
	}
	arrived := p.holds.arriving.enter(conn, p.config.DialTimeout)
	defer arrived()
	m, err := recv()
	if err == io.EOF {
		return nil, status.Error(codes.InvalidArgument, "an empty stream")
	}
	return m, err
}

// noteRefusal logs a refusal that an operator should know of.
func (p *Port) noteRefusal(text string, ctx context.Context, h *wire.Hello, r *wire.Refusal) {
	switch r.Reason {
	case wire.Refusal_CROSSED, wire.Refusal_INSTANCE, wire.Refusal_FAILED:
		return // the course of things
	}
	remote := ""
	if conn, ok := acceptedOf(ctx); ok {
		remote = conn.Conn.RemoteAddr().String()
	}
	p.notices.warn(text, "remote", remote, "says_it_is", clip(h.GetAddr()), "why", r.Text)
}
