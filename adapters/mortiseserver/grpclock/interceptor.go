package grpclock

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseserver/internal/serial"
)

// Node is the part of *mortise.Node that an Interceptor uses.
type Node = serial.Node

// Interceptor takes a lock for each call. If it does not get the lock, the call fails with
//
//	InvalidArgument     the key is not valid: see mortise.Request.Key
//	ResourceExhausted   the lock is held, and the request has Try, the queue has Request.MaxWaiting
//	                    requests, or MaxWait has passed
//	Internal            the mortise.Request is not valid or not allowed
//	Unavailable         the group cannot grant locks
//	DeadlineExceeded,
//	Canceled            the context of the call has ended
//
// The message does not contain the reason; Failed gets it. If the lock is lost, or the node begins
// to leave, and the handler returns an error of its ended context, the call fails with Unavailable.
// Any other result of the handler is passed on.
type Interceptor struct {
	Node Node // required

	// Request returns the lock under which a call is handled. If it returns false, the call is
	// handled without a lock. method is the full name, such as "/orders.Orders/Put". req is nil for
	// streams. Set MaxWaiting to limit how many calls wait for a key. Required.
	Request func(ctx context.Context, method string, req any) (mortise.Request, bool)

	// MaxWait limits how long a call waits for its lock. Zero means that only the context of the
	// call does. In any case a call waits for at most about a second while the lease of the node is
	// lost, because the group cannot be reached.
	MaxWait time.Duration

	// Failed is called with the reason of each error above, and with a mortise.ErrLost if the lock
	// was lost while the handler ran. Nil means that the errors are dropped.
	Failed func(ctx context.Context, method string, err error)
}

// Unary returns the interceptor for grpc.UnaryInterceptor or grpc.ChainUnaryInterceptor.
func (i Interceptor) Unary() grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (reply any,
		err error) {
		err = i.run(ctx, info.FullMethod, req, func(ctx context.Context) error {
			reply, err = handle(ctx, req)
			return err
		})
		return reply, err
	}
}

// Stream returns the interceptor for grpc.StreamInterceptor or grpc.ChainStreamInterceptor.
func (i Interceptor) Stream() grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		return i.run(stream.Context(), info.FullMethod, nil, func(ctx context.Context) error {
			return handle(srv, &streamOf{stream, ctx})
		})
	}
}

type streamOf struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *streamOf) Context() context.Context { return s.ctx }

func (i Interceptor) run(ctx context.Context, method string, req any, handle func(ctx context.Context) error) error {
	request, locked := i.Request(ctx, method, req)
	if !locked {
		return handle(ctx)
	}
	var handled error
	reason, err := serial.Do(ctx, i.Node, request, i.MaxWait, func(ctx context.Context) { handled = handle(ctx) })
	if err != nil && i.Failed != nil {
		i.Failed(ctx, method, err)
	}
	switch {
	case reason == serial.Cut && ctx.Err() == nil && ofContext(handled):
		return status.Error(codes.Unavailable, "grpclock: the lock was lost")
	case reason == serial.Cut, reason == serial.Ran:
		return handled
	}
	return refusal(ctx, reason)
}

// ofContext reports whether a handler has failed because its context had ended.
func ofContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, mortise.ErrLost) || errors.Is(err, mortise.ErrLeaving) ||
		status.Code(err) == codes.Canceled
}

func refusal(ctx context.Context, reason serial.Reason) error {
	switch reason {
	case serial.Busy:
		return status.Error(codes.ResourceExhausted, "grpclock: another call is handled")
	case serial.Away:
		return status.Error(codes.Unavailable, "grpclock: the lock cannot be had now")
	case serial.Ended:
		return status.FromContextError(ctx.Err()).Err()
	case serial.BadKey:
		return status.Error(codes.InvalidArgument, "grpclock: the key of the lock is not valid")
	}
	return status.Error(codes.Internal, "grpclock: the request for the lock was refused")
}
