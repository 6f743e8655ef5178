package grpcfence_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/fence/grpcfence"
)

type word = wrapperspb.StringValue

// Say answers with the token in its context. Stream answers each message with that token.
const (
	say    = "/test.Words/Say"
	stream = "/test.Words/Stream"
)

func found(ctx context.Context) *word {
	token, ok := mortise.TokenFrom(ctx)
	return wrapperspb.String(fmt.Sprint(uint64(token), ok))
}

func serve(t *testing.T, guard grpcfence.Guard, client grpcfence.Client, calls *atomic.Int64) *grpc.ClientConn {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.UnaryInterceptor(guard.Unary()), grpc.StreamInterceptor(guard.Stream()))
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "test.Words", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(srv any, ctx context.Context,
			decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
			in := &word{}
			if err := decode(in); err != nil {
				return nil, err
			}
			return intercept(ctx, in, &grpc.UnaryServerInfo{Server: srv, FullMethod: say},
				func(ctx context.Context, req any) (any, error) {
					calls.Add(1)
					if req.(*word).Value == "fail" {
						return nil, status.Error(codes.DataLoss, "of the handler")
					}
					return found(ctx), nil
				})
		}}},
		Streams: []grpc.StreamDesc{{StreamName: "Stream", ServerStreams: true, ClientStreams: true,
			Handler: func(_ any, s grpc.ServerStream) error {
				calls.Add(1)
				for {
					if err := s.RecvMsg(&word{}); errors.Is(err, io.EOF) {
						return nil
					} else if err != nil {
						return err
					}
					if err := s.SendMsg(found(s.Context())); err != nil {
						return err
					}
				}
			}}},
	}, struct{}{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return listener.DialContext(ctx)
		}),
		grpc.WithUnaryInterceptor(client.Unary()), grpc.WithStreamInterceptor(client.Stream()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func call(ctx context.Context, conn *grpc.ClientConn, method, text string) (string, error) {
	in, out := wrapperspb.String(text), &word{}
	if method == say {
		err := conn.Invoke(ctx, method, in, out)
		return out.Value, err
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return "", err
	}
	_ = s.SendMsg(in) // RecvMsg reports the error
	_ = s.CloseSend()
	if err := s.RecvMsg(out); err != nil {
		return "", err
	}
	return out.Value, s.RecvMsg(&word{})
}

type brokenStore struct{}

func (brokenStore) Advance(context.Context, string, mortise.Token) error {
	return errors.New("the password of the database is wrong")
}

func TestGuardAnswers(t *testing.T) {
	fixed := func(context.Context, string, any) string { return "a" }
	md := func(pairs ...string) metadata.MD { return metadata.Pairs(pairs...) }
	const token, resource = grpcfence.TokenKey, grpcfence.ResourceKey
	for _, c := range []struct {
		name  string
		guard grpcfence.Guard
		md    metadata.MD
		code  codes.Code
		text  string
	}{
		{"the mark", grpcfence.Guard{Resource: fixed}, md(token, "5"), codes.OK, "5 true"},
		{"higher", grpcfence.Guard{Resource: fixed}, md(token, "6"), codes.OK, "6 true"},
		{"stale", grpcfence.Guard{Resource: fixed}, md(token, "4"), codes.FailedPrecondition,
			`token 4 of "a" is older than 5`},
		{"absent", grpcfence.Guard{Resource: fixed}, md(), codes.FailedPrecondition, "no token"},
		{"absent, optional", grpcfence.Guard{Resource: fixed, Optional: true}, md(), codes.OK, "0 false"},
		{"malformed, optional", grpcfence.Guard{Resource: fixed, Optional: true}, md(token, ""),
			codes.InvalidArgument, "not a token"},
		{"negative", grpcfence.Guard{Resource: fixed}, md(token, "-5"), codes.InvalidArgument, "not a token"},
		{"overflow", grpcfence.Guard{Resource: fixed}, md(token, "9223372036854775808"), codes.InvalidArgument,
			"not a token"},
		{"huge", grpcfence.Guard{Resource: fixed}, md(token, strings.Repeat("7", 5000)), codes.InvalidArgument,
			"not a token"},
		{"two", grpcfence.Guard{Resource: fixed}, md(token, "5", token, "6"), codes.InvalidArgument, "not a token"},
		{"named", grpcfence.Guard{}, md(token, "4", resource, "ordérs b"), codes.OK, "4 true"},
		{"named and stale", grpcfence.Guard{}, md(token, "4", resource, "a"), codes.FailedPrecondition, "older"},
		{"not named", grpcfence.Guard{}, md(token, "5"), codes.InvalidArgument, "not a resource"},
		{"named twice", grpcfence.Guard{}, md(token, "5", resource, "a", resource, "b"), codes.InvalidArgument,
			"not a resource"},
		{"named with zeros", grpcfence.Guard{}, md(token, "5", resource, "a\x00"), codes.InvalidArgument,
			"not a resource"},
		{"named at length", grpcfence.Guard{}, md(token, "5", resource, strings.Repeat("x", 600)),
			codes.InvalidArgument, "not a resource"},
		{"broken store", grpcfence.Guard{Resource: fixed, Store: brokenStore{}}, md(token, "5"), codes.Unavailable,
			"could not be compared"},
		{"not guarded", grpcfence.Guard{Methods: func(m string) bool { return m != say && m != stream }},
			md(token, "4"), codes.OK, "0 false"},
	} {
		for _, method := range []string{say, stream} {
			mark := &fence.Mark{}
			_ = mark.Advance(t.Context(), "a", 5)
			var failed atomic.Value
			c.guard.Failed = func(_ context.Context, _ string, err error) { failed.Store(err.Error()) }
			if _, broken := c.guard.Store.(brokenStore); !broken {
				c.guard.Store = mark
			}
			var calls atomic.Int64
			conn := serve(t, c.guard, grpcfence.Client{}, &calls)
			got, err := call(metadata.NewOutgoingContext(t.Context(), c.md), conn, method, "")
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if status.Code(err) != c.code || !strings.Contains(got+status.Convert(err).Message(), c.text) {
				t.Errorf("%s, %s: %q %v, want %v with %q", c.name, method, got, err, c.code, c.text)
			}
			if (calls.Load() == 1) != (c.code == codes.OK) {
				t.Errorf("%s, %s: the handler ran %d times", c.name, method, calls.Load())
			}
			if (failed.Load() != nil) != (c.code == codes.Unavailable) ||
				strings.Contains(status.Convert(err).Message(), "password") {
				t.Errorf("%s, %s: Failed was told %v, the client %v", c.name, method, failed.Load(), err)
			}
		}
	}
}

func TestClientMeetsGuard(t *testing.T) {
	for _, method := range []string{say, stream} {
		var calls atomic.Int64
		conn := serve(t, grpcfence.Guard{Store: &fence.Mark{}}, grpcfence.Client{
			Require:  true,
			Resource: func(_ context.Context, m string, req any) string { return fmt.Sprint(m, req != nil) },
		}, &calls)
		if _, err := call(t.Context(), conn, method, ""); status.Code(err) != codes.FailedPrecondition ||
			calls.Load() != 0 {
			t.Errorf("%s without a token: %v", method, err)
		}
		// The token of the context replaces a token that is already in the metadata.
		old := metadata.AppendToOutgoingContext(t.Context(), grpcfence.TokenKey, "99", "other", "kept")
		for _, token := range []mortise.Token{5, 6} {
			got, err := call(mortise.ContextWithToken(old, token), conn, method, "")
			if err != nil && !errors.Is(err, io.EOF) || got != fmt.Sprint(uint64(token), true) {
				t.Errorf("%s token %d: %q, %v", method, token, got, err)
			}
		}
		if _, err := call(mortise.ContextWithToken(old, 5), conn, method, ""); status.Code(err) != codes.FailedPrecondition ||
			!strings.Contains(err.Error(), fmt.Sprint(method, method == say)) {
			t.Errorf("%s: %v", method, err)
		}
		if md, _ := metadata.FromOutgoingContext(old); fmt.Sprint(md.Get(grpcfence.TokenKey)) != "[99]" {
			t.Errorf("the metadata of the caller has changed: %v", md)
		}
	}
}

func TestErrorsOfHandlersPass(t *testing.T) {
	var calls atomic.Int64
	conn := serve(t, grpcfence.Guard{Store: &fence.Mark{}, Resource: func(context.Context, string,
		any) string {
		return "a"
	}}, grpcfence.Client{}, &calls)
	if _, err := call(mortise.ContextWithToken(t.Context(), 5), conn, say, "fail"); status.Code(err) != codes.DataLoss {
		t.Error(err)
	}
}
