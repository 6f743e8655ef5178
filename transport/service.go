package transport

import (
	"context"
	"io"
	"net"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// service answers what comes in on the port.
type service struct {
	wire.UnimplementedPeerServer
	port *Port
}

// firstOf reads the first message of a stream of calls. A peer that sends none loses the connection.
func firstOf[M any](p *Port, ctx context.Context, recv func() (*M, error)) (*M, error) {
	conn, ok := acceptedOn(remoteOf(ctx))
	if !ok {
		return nil, status.Error(codes.Internal, "no connection")
	}
	timer := time.AfterFunc(p.config.DialTimeout, func() { conn.Close() })
	defer timer.Stop()
	m, err := recv()
	if err == io.EOF {
		return nil, status.Error(codes.InvalidArgument, "an empty stream")
	}
	return m, err
}

// remoteOf returns where the connection under an incoming call comes from; nil if there is none.
func remoteOf(ctx context.Context) net.Addr {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	return from.Addr
}

// noteRefusal logs a refusal that an operator should know of.
func (p *Port) noteRefusal(text string, from Identity, remote net.Addr, r *wire.Refusal) {
	switch r.Reason {
	case wire.Refusal_CROSSED, wire.Refusal_FAILED, wire.Refusal_COPY:
		return // the course of things, or logged where it was found
	}
	p.notices.warn(text, "instance", from.Instance, "remote", remote, "says_it_is", clip(from.Addr), "why", r.Text)
}
