package transport

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Service is a service of generated code, and what answers it. Its methods are unary. They are called
// on several goroutines at once, and may block until their context ends, which happens after 30 s at
// the latest. An error other than a [*Failure] is not shown to the asker, which learns only that there
// was no answer. Question and answer belong to the Port once the method returns.
type Service struct {
	Desc *grpc.ServiceDesc
	Impl any
}

// Services is all that an instance answers.
type Services struct {
	List []Service

	// Intercept is called in place of each method, and decides whether the method is called. It is
	// required with a service. [AskerOf] returns which instance has put the question.
	Intercept grpc.UnaryServerInterceptor
}

// Failure says why an instance does not do what it is asked. Body is a message of the rooms above.
type Failure struct{ Body []byte }

func (f *Failure) Error() string { return "transport: the question has failed" }

type askerKey struct{}

// AskerOf returns which instance has put the question that is answered under ctx.
func AskerOf(ctx context.Context) Identity {
	from, _ := ctx.Value(askerKey{}).(Identity)
	return from
}

// call answers a question. decode fills in the message of the question.
func (s *Services) call(ctx context.Context, from Identity, name string, decode func(any) error) (any, error) {
	for _, each := range s.List {
		for _, m := range each.Desc.Methods {
			if nameOf(each.Desc, m) == name {
				return m.Handler(each.Impl, context.WithValue(ctx, askerKey{}, from), decode, s.Intercept)
			}
		}
	}
	return nil, status.Error(codes.Unimplemented, name)
}

// nameOf returns the full name of a method, as generated code has it.
func nameOf(of *grpc.ServiceDesc, m grpc.MethodDesc) string {
	return "/" + of.ServiceName + "/" + m.MethodName
}

// register has the server answer all services. On the wire each method is a stream of pieces in both
// directions: gRPC gathers a message before this port can see whose it is and how much that instance
// has here already.
func (p *Port) register(s *Services) {
	for _, each := range s.List {
		desc := grpc.ServiceDesc{ServiceName: each.Desc.ServiceName, HandlerType: each.Desc.HandlerType, Metadata: each.Desc.Metadata}
		for _, m := range each.Desc.Methods {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: m.MethodName, ClientStreams: true, ServerStreams: true,
				Handler: func(_ any, stream grpc.ServerStream) error {
					return p.serve(nameOf(each.Desc, m), &grpc.GenericServerStream[wire.Question, wire.Answer]{ServerStream: stream})
				},
			})
		}
		p.server.RegisterService(&desc, each.Impl)
	}
}

// As returns these services for a client in the same process, which asks as from. Nothing is sent, and
// the messages of caller and method are different ones. It is safe for concurrent use.
func (s *Services) As(from Identity) Conn { return local{s, from} }

type local struct {
	services *Services
	from     Identity
}

func (l local) Invoke(ctx context.Context, method string, question, answer any, _ ...grpc.CallOption) error {
	said, err := l.services.call(ctx, l.from, method, func(v any) error {
		proto.Merge(v.(proto.Message), question.(proto.Message))
		return nil
	})
	if err == nil {
		proto.Merge(answer.(proto.Message), said.(proto.Message))
	}
	return err
}

func (l local) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return (*Remote)(nil).NewStream(ctx, desc, method)
}
