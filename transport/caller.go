package transport

import (
	"context"
	"io"
	"net"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type greeted struct {
	credentials.CommonAuthInfo
	peer Identity
	self nodeid.ID // incarnation of this node that sent the answering hello
}

func (greeted) AuthType() string { return "mortise" }

// caller returns the instance that opened the connection of a call, or the reason for refusing the
// call.
func (p *base) caller(ctx context.Context) (Identity, *wire.Refusal) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "no connection"}
	}
	met, ok := from.AuthInfo.(greeted)
	if !ok || met.self != p.self.Load().Instance() {
		return Identity{}, &wire.Refusal{Reason: wire.Refusal_FAILED,
			Text: "this instance has begun a new incarnation: connect again"}
	}
	return met.peer, nil
}

func noConnection() error { return status.Error(codes.Internal, "no connection") }

// firstOf returns the first message of a call. It closes the connection if the message does not
// arrive within the dial timeout.
func firstOf[M any](p *base, ctx context.Context, recv func() (*M, error)) (*M, error) {
	conn, ok := acceptedOn(remoteOf(ctx))
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

func remoteOf(ctx context.Context) net.Addr {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return from.Addr
}

func (p *base) noteRefusal(text string, from Identity, remote net.Addr, r *wire.Refusal) {
	switch r.Reason {
	case wire.Refusal_CROSSED, wire.Refusal_FAILED, wire.Refusal_COPY:
		return // expected, or logged elsewhere
	}
	p.notices.warn(text, "instance", from.Instance, "remote", remote, "says_it_is", clip(from.Addr), "why", r.Text)
}
