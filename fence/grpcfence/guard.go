package grpcfence

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
)

// Guard makes server interceptors. The rules of [fence.Guard] for stores, sections and trust apply.
type Guard struct {
	Store fence.Store // required

	// Resource returns the name of the resource that a call writes to. A call for which Resource
	// returns "" is malformed. req is nil for streams. If Resource is nil, the name in the metadata
	// is used, and all clients must use the same names.
	Resource func(ctx context.Context, method string, req any) string

	// Methods reports whether calls of a method are guarded. method is the full name, such as
	// "/orders.Orders/Put". Nil means that all calls are guarded.
	Methods func(method string) bool

	Optional bool // whether a call without a token is handled anyway, unprotected
	// Failed is called with errors of the store other than refusals. Nil means that they are
	// discarded.
	Failed func(ctx context.Context, method string, err error)
}

// Unary returns the interceptor for grpc.UnaryInterceptor or grpc.ChainUnaryInterceptor.
func (g Guard) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any,
		err error) {
		err = g.run(ctx, info.FullMethod, req, func(ctx context.Context) error {
			reply, err = handle(ctx, req)
			return err
		})
		return reply, err
	}
}

// Stream returns the interceptor for grpc.StreamInterceptor or grpc.ChainStreamInterceptor.
func (g Guard) Stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		return g.run(stream.Context(), info.FullMethod, nil, func(ctx context.Context) error {
			return handle(srv, &streamOf{stream, ctx})
		})
	}
}

type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamOf) Context() context.Context { return s.ctx }

func (g Guard) run(ctx context.Context, method string, req any, handle func(context.Context) error) error {
	if g.Methods != nil && !g.Methods(method) {
		return handle(ctx)
	}
	md, _ := metadata.FromIncomingContext(ctx)
	token, err := tokenOf(md)
	if errors.Is(err, fence.ErrNoToken) && g.Optional {
		return handle(ctx)
	}
	if err != nil {
		return g.refusal(ctx, method, err)
	}
	var resource string
	if g.Resource != nil {
		resource = g.Resource(ctx, method, req)
	} else if values := md.Get(ResourceKey); len(values) == 1 {
		resource = values[0] // if the key occurs twice, resource remains empty and the store refuses the call
	}
	admitted, handled := false, error(nil)
	err = fence.Run(ctx, g.Store, resource, token, func(ctx context.Context) error {
		admitted = true
		handled = handle(ctx)
		return handled
	})
	if !admitted {
		return g.refusal(ctx, method, err)
	}
	if handled == nil && err != nil && g.Failed != nil {
		g.Failed(ctx, method, err) // the store failed after the handler had finished
	}
	return handled
}

func tokenOf(md metadata.MD) (mortise.Token, error) {
	switch values := md.Get(TokenKey); len(values) {
	case 0:
		return 0, fence.ErrNoToken
	case 1:
		return fence.ParseToken(values[0])
	}
	return 0, fence.ErrBadToken
}

func (g Guard) refusal(ctx context.Context, method string, err error) error {
	switch {
	case errors.Is(err, fence.ErrStale), errors.Is(err, fence.ErrNoToken):
		return status.Error(codes.FailedPrecondition, err.Error())
	case errors.Is(err, fence.ErrBadToken), errors.Is(err, fence.ErrBadResource):
		return status.Error(codes.InvalidArgument, err.Error())
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	}
	if g.Failed != nil {
		g.Failed(ctx, method, err)
	}
	return status.Error(codes.Unavailable, "fence: the token could not be compared")
}
