package grpclock

import (
	"context"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/fence/grpcfence"
)

type word = wrapperspb.StringValue

// serve starts a server with one unary method, and returns a connection to it.
func serve(t *testing.T, server grpc.UnaryServerInterceptor, client grpc.UnaryClientInterceptor,
	handle func(ctx context.Context, in *word) (*word, error)) *grpc.ClientConn {
	listener := bufconn.Listen(1 << 16)
	s := grpc.NewServer(grpc.UnaryInterceptor(server))
	s.RegisterService(&grpc.ServiceDesc{ServiceName: "test.Orders", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Put", Handler: func(srv any, ctx context.Context, decode func(any) error,
			intercept grpc.UnaryServerInterceptor) (any, error) {
			in := &word{}
			if err := decode(in); err != nil {
				return nil, err
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: put},
				func(ctx context.Context, req any) (any, error) { return handle(ctx, req.(*word)) })
		}}}}, struct{}{})
	go s.Serve(listener)
	t.Cleanup(s.Stop)
	conn, err := grpc.NewClient("passthrough:test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithUnaryInterceptor(client))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// The token of the lock under which a call is handled reaches the store that the handler calls. The
// store refuses the token of a handler that has lost its lock.
func TestTheTokenReachesTheStore(t *testing.T) {
	node, err := mortise.Start(t.Context(), mortise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	resource := func(_ context.Context, _ string, req any) string { return req.(*word).GetValue() }
	client := grpcfence.Client{Resource: resource}
	store := serve(t, grpcfence.Guard{Store: &fence.Mark{}}.Unary(), client.Unary(),
		func(context.Context, *word) (*word, error) { return wrapperspb.String("stored"), nil })
	request := func(_ context.Context, _ string, req any) (mortise.Request, bool) {
		return mortise.Request{Key: "orders/" + req.(*word).GetValue()}, true
	}
	locks := Interceptor{Node: node, Request: request}
	orders := serve(t, locks.Unary(), grpcfence.Client{}.Unary(), func(ctx context.Context, in *word) (*word, error) {
		out := &word{}
		return out, store.Invoke(ctx, put, in, out)
	})
	out := &word{}
	if err := orders.Invoke(t.Context(), put, wrapperspb.String("42"), out); err != nil || out.GetValue() != "stored" {
		t.Errorf("%q, %v", out.GetValue(), err)
	}
	err = store.Invoke(mortise.ContextWithToken(t.Context(), 5), put, wrapperspb.String("42"), out)
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("a late token: %v", err)
	}
}
