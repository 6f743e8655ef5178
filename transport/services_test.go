package transport

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

func TestTheInterceptorDecides(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		calls, methods := 0, ""
		b := w.node("b", 2, func(c *Config) {
			c.Services.Intercept = func(ctx context.Context, q any, info *grpc.UnaryServerInfo,
				method grpc.UnaryHandler) (any, error) {
				methods += info.FullMethod
				switch string(q.(*wrapperspb.BytesValue).Value) {
				case "words":
					return nil, &Failure{Body: []byte("because of " + AskerOf(ctx).Instance.String())}
				case "secret":
					return nil, errors.New("a secret")
				}
				return method(ctx, q)
			}
		})
		b.ask = func(_ context.Context, from Identity, q []byte) ([]byte, error) {
			calls++
			return append(q, from.Instance.String()...), nil
		}
		a := w.node("a", 1)
		near := b.config.Services.As(a.identity)
		for what, conn := range map[string]Conn{"far": a.To("b:1", id(2)), "near": near} {
			ask := func(q string) (string, error) {
				var answer wrapperspb.BytesValue
				question := wrapperspb.Bytes([]byte(q))
				err := conn.Invoke(t.Context(), echoMethod, question, &answer)
				if string(question.Value) != q {
					t.Errorf("%s: the question was changed to %q", what, question.Value)
				}
				return string(answer.Value), err
			}
			calls = 0
			if answer, err := ask("x"); answer != "x"+id(1).String() || err != nil || calls != 1 {
				t.Errorf("%s: %q, %v, %d calls", what, answer, err, calls)
			}
			if _, err := ask("words"); calls != 1 {
				t.Errorf("%s: the method was called: %v", what, err)
			} else if f, ok := errors.AsType[*Failure](err); !ok || string(f.Body) != "because of "+id(1).String() {
				t.Errorf("%s: %v", what, err)
			}
			if _, err := ask("secret"); calls != 1 || err == nil || what == "far" && (!errors.Is(err, ErrSilent) ||
				strings.Contains(err.Error(), "secret")) {
				t.Errorf("%s: %v", what, err)
			}
			if err := conn.Invoke(t.Context(), "/test.Echo/Other", wrapperspb.Bytes(nil),
				&wrapperspb.BytesValue{}); calls != 1 || err == nil || what == "far" && !errors.Is(err, ErrVersion) {
				t.Errorf("%s: an unknown question: %v", what, err)
			}
		}
		if methods != strings.Repeat(echoMethod, 6) {
			t.Errorf("the interceptor saw %s", methods)
		}
	})
}

func TestAMessageThatCannotBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.node("a", 1), w.node("b", 2)
		b.ask = func(context.Context, Identity, []byte) ([]byte, error) {
			t.Error("it was called")
			return nil, nil
		}
		if _, _, err := a.Port.ask(t.Context(), "b:1", id(2), echoMethod, []byte{0x0a, 200}); !errors.Is(err,
			ErrSilent) {
			t.Error(err)
		}
		w.servePeer("odd:1", 5, func(s asked) error { return s.Send(&wire.Answer{Body: []byte{0x0a, 200}}) })
		if _, _, err := a.Ask(t.Context(), "odd:1", id(5), nil); !errors.Is(err, ErrVersion) {
			t.Error(err)
		}
	})
}

// A peer that has given up, before this process has, was silent.
func TestTheDeadlineOfAPeerIsSilence(t *testing.T) {
	err := (&dialed{addr: "a:1"}).explain(t.Context(), status.Error(codes.DeadlineExceeded, "late"))
	if !errors.Is(err, ErrSilent) || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}
