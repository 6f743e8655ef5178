package transport

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Service is a service of generated code and its implementation. Its methods are unary. They are
// called concurrently, and may block until their context ends, after 30 s at the latest. If a
// method returns an error other than a [*Failure], its caller gets ErrSilent. The Port owns the
// question and the answer once the method has returned.
type Service struct {
	Desc *grpc.ServiceDesc
	Impl any
}

// Services lists the services that an instance answers.
type Services struct {
	List []Service

	// Intercept is called in place of each method, and decides whether to call it. It is required
	// if List is not empty. [AskerOf] returns the instance that asks.
	Intercept grpc.UnaryServerInterceptor
}

// Failure reports why an instance does not do what a question asks. Body is a message of the
// package that uses this one.
type Failure struct{ Body []byte }

func (f *Failure) Error() string { return "transport: the question has failed" }

// Conn is the connection on which generated clients call methods.
type Conn = grpc.ClientConnInterface

type askerKey struct{}

// AskerOf returns the instance whose question is being answered with ctx.
func AskerOf(ctx context.Context) Identity {
	from, _ := ctx.Value(askerKey{}).(Identity)
	return from
}

// method answers the questions of one kind. decode fills in the message of the question.
type method func(ctx context.Context, from Identity, decode func(any) error) (any, error)

func (s *Services) method(of Service, m grpc.MethodDesc) method {
	return func(ctx context.Context, from Identity, decode func(any) error) (any, error) {
		return m.Handler(of.Impl, context.WithValue(ctx, askerKey{}, from), decode, s.Intercept)
	}
}

// As returns a connection for a client in the same process. The services see the client as the peer
// `from`. The connection uses no network and copies all messages. As is safe for concurrent use.
func (s *Services) As(from Identity) Conn { return local{s, from} }

type local struct {
	services *Services
	from     Identity
}

func (l local) Invoke(ctx context.Context, name string, question, answer any, _ ...grpc.CallOption) error {
	answers := l.find(name)
	if answers == nil {
		return status.Error(codes.Unimplemented, name)
	}
	said, err := answers(ctx, l.from, func(v any) error {
		proto.Merge(v.(proto.Message), question.(proto.Message))
		return nil
	})
	if err == nil {
		proto.Merge(answer.(proto.Message), said.(proto.Message))
	}
	return err
}

func (l local) find(name string) method {
	service, of, _ := strings.Cut(strings.TrimPrefix(name, "/"), "/")
	for _, each := range l.services.List {
		for _, m := range each.Desc.Methods {
			if each.Desc.ServiceName == service && m.MethodName == of {
				return l.services.method(each, m)
			}
		}
	}
	return nil
}

// NewStream always fails, because a question has a single answer.
func (l local) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, noStream()
}

func noStream() error {
	return status.Error(codes.Unimplemented, "transport: a question has one answer, not a stream")
}
