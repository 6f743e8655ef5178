package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type asked = grpc.BidiStreamingServer[wire.Question, wire.Answer]

// serve answers a question. It closes the connection if the whole question does not arrive within
// twice the dial timeout.
func (p *base) serve(answers method, stream asked) error {
	conn, ok := acceptedOn(remoteOf(stream.Context()))
	if !ok {
		return noConnection()
	}
	arrived := p.holds.arriving.enter(conn, 2*p.config.DialTimeout)
	from, body, refusal, err := p.question(stream)
	defer func() { p.holds.held.Give(from.claimant(), len(body)) }()
	if !arrived() || err != nil {
		return err
	}
	if refusal == nil && p.holds.questions.Take(from.claimant(), 1) != nil {
		refusal = &wire.Refusal{Reason: wire.Refusal_FULL, Text: "too many questions at once"}
	} else if refusal == nil {
		defer p.holds.questions.Give(from.claimant(), 1)
	}
	var answer []byte
	failed := false
	if refusal == nil {
		answer, failed, refusal = p.handle(stream.Context(), from, answers, body)
	}
	if refusal != nil {
		return stream.Send(&wire.Answer{Refusal: refusal})
	}
	defer p.holds.told.Give(from.claimant(), len(answer))
	if err := p.reply(stream, conn, answer, failed); err != nil || failed {
		return err
	}
	conn.tally.answered(len(body) + len(answer)) // after the frames for which it pays have arrived
	return nil
}

// question receives all pieces of a question. The returned bytes count against the sender's quota
// until the caller gives them back, even if question also returns an error or a refusal.
func (p *base) question(stream asked) (from Identity, body []byte, refusal *wire.Refusal, err error) {
	first, err := firstOf(p, stream.Context(), stream.Recv)
	if err != nil {
		return from, nil, nil, err
	}
	if from, refusal = p.caller(stream.Context()); refusal != nil {
		return from, nil, refusal, nil
	}
	for next := first; err == nil; next, err = stream.Recv() {
		if len(body)+len(next.Body) > questionBytes || p.holds.held.Take(from.claimant(), len(next.Body)) != nil {
			text := fmt.Sprintf("a question of more than %d bytes, or too many at once", questionBytes)
			return from, body, &wire.Refusal{Reason: wire.Refusal_FULL, Text: text}, nil
		}
		body = append(body, next.Body...)
	}
	if err == io.EOF {
		err = nil
	}
	return from, body, nil, err
}

// handle calls the method that answers. The returned bytes count against the sender's quota until
// the caller gives them back. failed is true if the bytes are the body of a Failure.
func (p *base) handle(ctx context.Context, from Identity, answers method, body []byte) (answer []byte, failed bool,
	_ *wire.Refusal) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	said, err := answers(asking, from, func(v any) error { return proto.Unmarshal(body, v.(proto.Message)) })
	if err == nil {
		answer, err = proto.Marshal(said.(proto.Message))
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		answer, failed, err = f.Body, true, nil
	}
	// Do not send the answer if this node has begun a new incarnation.
	if _, refusal := p.caller(ctx); refusal != nil {
		return nil, false, refusal
	}
	switch {
	case err != nil:
		return nil, false, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "this node could not answer the question"}
	case p.holds.told.Take(from.claimant(), len(answer)) != nil:
		text := fmt.Sprintf("an answer of %d bytes exceeds the budget of answers that are being sent", len(answer))
		return nil, false, &wire.Refusal{Reason: wire.Refusal_FULL, Text: text}
	}
	return answer, failed, nil
}

func (p *base) reply(stream asked, conn *accepted, answer []byte, failed bool) error {
	patience := time.AfterFunc(allowance(2*p.config.DialTimeout, uint64(len(answer))), func() { conn.Close() })
	defer patience.Stop()
	for first := true; first || len(answer) > 0; first = false {
		piece := answer[:min(len(answer), pieceBytes)]
		answer = answer[len(piece):]
		if err := stream.Send(&wire.Answer{Body: piece, Failed: failed}); err != nil {
			return err
		}
	}
	return nil
}

// register registers all services with the gRPC server. On the wire, each method is a stream of
// pieces in both directions; see "Refused alternatives" in the package comment.
func (p *Port) register(s *Services) {
	for _, of := range s.List {
		desc := grpc.ServiceDesc{ServiceName: of.Desc.ServiceName, HandlerType: of.Desc.HandlerType,
			Metadata: of.Desc.Metadata}
		for _, m := range of.Desc.Methods {
			answers := s.method(of, m)
			desc.Streams = append(desc.Streams, grpc.StreamDesc{
				StreamName: m.MethodName, ClientStreams: true, ServerStreams: true,
				Handler: func(_ any, stream grpc.ServerStream) error {
					return p.serve(answers, &grpc.GenericServerStream[wire.Question, wire.Answer]{ServerStream: stream})
				},
			})
		}
		p.server.RegisterService(&desc, of.Impl)
	}
}
