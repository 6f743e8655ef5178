package grpcfence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/fence"
	"github.com/mortise-lock/mortise/fence/grpcfence"
)

// TestWhatAClientSends compares everything that the interceptors of a client pass on, for each
// option alone, with and without a token.
func TestWhatAClientSends(t *testing.T) {
	named := func(_ context.Context, method string, req any) string { return fmt.Sprint(method, " of ", req) }
	unnamed := func(context.Context, string, any) string { return "" }
	const none = `rpc error: code = FailedPrecondition desc = fence: no token in the context of /m`
	for _, row := range []struct {
		name   string
		client grpcfence.Client
		token  mortise.Token // 0 for none
		before []string      // the metadata of the caller
		want   string        // the metadata that is sent; the resource has the place %
		fails  string
	}{
		{"no token", grpcfence.Client{}, 0, nil, "map[]", ""},
		{"no token, and others", grpcfence.Client{Resource: named}, 0, []string{"other", "kept"}, "map[other:[kept]]", ""},
		{"no token, required", grpcfence.Client{Require: true}, 0, nil, "", none},
		{"a token", grpcfence.Client{}, 7, nil, "map[mortise-token:[7]]", ""},
		{"a token, required", grpcfence.Client{Require: true}, 7, nil, "map[mortise-token:[7]]", ""},
		{"a token, and others", grpcfence.Client{}, 7, []string{"other", "kept", "mortise-token", "99"},
			"map[mortise-token:[7] other:[kept]]", ""},
		{"a resource", grpcfence.Client{Resource: named}, 7, nil,
			"map[mortise-resource-bin:[/m of %] mortise-token:[7]]", ""},
		{"no resource", grpcfence.Client{Resource: unnamed}, 7, nil, "map[mortise-token:[7]]", ""},
	} {
		ctx := t.Context()
		if row.before != nil {
			ctx = metadata.AppendToOutgoingContext(ctx, row.before...)
		}
		if row.token != 0 {
			ctx = mortise.ContextWithToken(ctx, row.token)
		}
		wants := func(kind, sent string, err error, ofReq string) {
			t.Helper()
			want := strings.Replace(row.want, "%", ofReq, 1)
			if sent != want || row.fails == "" && !errors.Is(err, errPassed) ||
				row.fails != "" && (err == nil || err.Error() != row.fails) {
				t.Errorf("%s, %s: sent %s, want %s; the error is %v", row.name, kind, sent, want, err)
			}
		}
		conn, option, reply := &grpc.ClientConn{}, grpc.EmptyCallOption{}, new(int)
		sent := ""
		err := row.client.Unary()(ctx, "/m", "req", reply, conn, func(ctx context.Context, method string, req, to any,
			on *grpc.ClientConn, opts ...grpc.CallOption) error {
			if method != "/m" || req != "req" || to != any(reply) || on != conn || len(opts) != 1 {
				t.Errorf("%s: passed on %s %v %v %p %v", row.name, method, req, to, on, opts)
			}
			md, _ := metadata.FromOutgoingContext(ctx)
			sent = fmt.Sprint(map[string][]string(md))
			return errPassed
		}, option)
		wants("a call", sent, err, "req")

		sent = ""
		desc, opened := &grpc.StreamDesc{}, &clientStream{}
		stream, err := row.client.Stream()(ctx, desc, conn, "/m", func(ctx context.Context, d *grpc.StreamDesc,
			on *grpc.ClientConn, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if d != desc || method != "/m" || on != conn || len(opts) != 1 {
				t.Errorf("%s: passed on %p %s %p %v", row.name, d, method, on, opts)
			}
			md, _ := metadata.FromOutgoingContext(ctx)
			sent = fmt.Sprint(map[string][]string(md))
			return opened, errPassed
		}, option)
		wants("a stream", sent, err, "<nil>")
		if (stream == grpc.ClientStream(opened)) != (row.fails == "") {
			t.Errorf("%s: the stream is %v", row.name, stream)
		}
	}
}

var errPassed = errors.New("passed on")

type clientStream struct{ grpc.ClientStream }

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }

// section is a store that runs its function, or not, and then fails, or not.
type section struct {
	fence.Store
	runs  bool
	fails error
}

func (s section) Do(ctx context.Context, _ string, _ mortise.Token, fn func(context.Context) error) error {
	if s.runs {
		if err := fn(ctx); err != nil {
			return err
		}
	}
	return s.fails
}

// TestWhatAGuardTells compares the answer, the calls of the handler and those of Failed, for each
// way in which a store and a handler end, with and without Failed, and while the call has ended.
func TestWhatAGuardTells(t *testing.T) {
	down, own := errors.New("down"), errors.New("own")
	refused := status.Error(codes.Unavailable, "fence: the token could not be compared").Error()
	for _, row := range []struct {
		name    string
		store   fence.Store
		handler error
		ended   error // of the context
		want    string
		handled bool
		told    bool
	}{
		{"good", section{runs: true}, nil, nil, "", true, false},
		{"the handler fails", section{runs: true}, own, nil, "own", true, false},
		{"the store fails before", section{fails: down}, nil, nil, refused, false, true},
		{"the store fails after", section{runs: true, fails: down}, nil, nil, "", true, true},
		{"canceled", section{fails: context.Canceled}, nil, context.Canceled,
			"rpc error: code = Canceled desc = context canceled", false, false},
		{"late", section{fails: context.DeadlineExceeded}, nil, context.DeadlineExceeded,
			"rpc error: code = DeadlineExceeded desc = context deadline exceeded", false, false},
		{"stale", section{fails: &fence.StaleError{Resource: "r", Token: 5, Highest: 6}}, nil, nil,
			`rpc error: code = FailedPrecondition desc = fence: token 5 of "r" is older than 6, the highest seen`,
			false, false},
		{"a bad resource", section{fails: fmt.Errorf("%w: r", fence.ErrBadResource)}, nil, nil,
			"rpc error: code = InvalidArgument desc = fence: not a resource: r", false, false},
		{"a bad token", section{fails: fmt.Errorf("%w: 5", fence.ErrBadToken)}, nil, nil,
			"rpc error: code = InvalidArgument desc = fence: not a token: 5", false, false},
		{"no token", section{fails: fence.ErrNoToken}, nil, nil,
			"rpc error: code = FailedPrecondition desc = fence: no token", false, false},
	} {
		for _, tells := range []bool{true, false} {
			for _, kind := range []string{"call", "stream"} {
				name := fmt.Sprintf("%s, %s, Failed %v", row.name, kind, tells)
				ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(grpcfence.TokenKey, "5"))
				switch row.ended {
				case context.Canceled:
					ended, cancel := context.WithCancel(ctx)
					cancel()
					ctx = ended
				case context.DeadlineExceeded:
					ended, cancel := context.WithTimeout(ctx, -1)
					defer cancel()
					ctx = ended
				}
				var failed, handled, asked []string
				guard := grpcfence.Guard{Store: row.store, Resource: func(in context.Context, method string, req any) string {
					asked = append(asked, fmt.Sprint(in == ctx, method, req))
					return "r"
				}}
				if tells {
					guard.Failed = func(in context.Context, method string, err error) {
						failed = append(failed, fmt.Sprint(in == ctx, method, err == down))
					}
				}
				var err error
				if kind == "call" {
					var reply any
					reply, err = guard.Unary()(ctx, "req", &grpc.UnaryServerInfo{FullMethod: "/m"},
						func(in context.Context, req any) (any, error) {
							token, _ := mortise.TokenFrom(in)
							handled = append(handled, fmt.Sprint(uint64(token), req))
							return "reply", row.handler
						})
					if (reply == "reply") != row.handled || !row.handled && reply != nil {
						t.Errorf("%s: the reply is %v", name, reply)
					}
				} else {
					server := "server"
					err = guard.Stream()(server, &serverStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: "/m"},
						func(srv any, s grpc.ServerStream) error {
							token, _ := mortise.TokenFrom(s.Context())
							handled = append(handled, fmt.Sprint(uint64(token), srv))
							return row.handler
						})
				}
				if text := fmt.Sprint(err); (row.want != "" || err != nil) && text != row.want {
					t.Errorf("%s: %v, want %q", name, err, row.want)
				}
				wantAsked, wantHandled := "[true/mreq]", "[5req]"
				if kind == "stream" {
					wantAsked, wantHandled = "[true/m<nil>]", "[5server]"
				}
				if !row.handled {
					wantHandled = "[]"
				}
				wantFailed := "[]"
				if row.told && tells {
					wantFailed = "[true/mtrue]"
				}
				if got := fmt.Sprint(asked, handled, failed); got != fmt.Sprint(wantAsked, " ", wantHandled, " ", wantFailed) {
					t.Errorf("%s: asked, handled and failed are %s, want %s %s %s", name, got, wantAsked, wantHandled,
						wantFailed)
				}
			}
		}
	}
}
