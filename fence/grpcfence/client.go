package grpcfence

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

const (
	TokenKey    = "mortise-token"        // decimal digits, see fence.ParseToken
	ResourceKey = "mortise-resource-bin" // optional; may be any bytes, because gRPC encodes the values of -bin keys
)

// Client makes client interceptors. With the zero value, a call whose context carries no token is
// sent without a token.
type Client struct {
	// Resource returns the name of the resource that the call writes to, usually the lock's key. If
	// Resource is nil or returns "", no name is sent. req is nil for streams.
	Resource func(ctx context.Context, method string, req any) string
	// Require makes a call without a token fail with FailedPrecondition.
	Require bool
}

// Unary returns the interceptor for grpc.WithUnaryInterceptor or grpc.WithChainUnaryInterceptor.
func (c Client) Unary() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
		opts ...grpc.CallOption) error {
		ctx, err := c.outgoing(ctx, method, req)
		if err != nil {
			return err
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
}

// Stream returns the interceptor for grpc.WithStreamInterceptor or grpc.WithChainStreamInterceptor.
// It sends the token of the context with which the stream is opened.
func (c Client) Stream() grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
		opts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := c.outgoing(ctx, method, nil)
		if err != nil {
			return nil, err
		}
		return open(ctx, desc, conn, method, opts...)
	}
}

func (c Client) outgoing(ctx context.Context, method string, req any) (context.Context, error) {
	token, ok := mortise.TokenFrom(ctx)
	if !ok && c.Require {
		return nil, status.Errorf(codes.FailedPrecondition, "%v in the context of %s", fence.ErrNoToken, method)
	}
	if !ok {
		return ctx, nil
	}
	md, _ := metadata.FromOutgoingContext(ctx)
	if md == nil {
		md = metadata.MD{}
	}
	md.Set(TokenKey, fence.FormatToken(token))
	if c.Resource != nil {
		if resource := c.Resource(ctx, method, req); resource != "" {
			md.Set(ResourceKey, resource)
		}
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}
