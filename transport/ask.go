package transport

import (
	"context"
	"errors"
	"fmt"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/fair"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Remote represents the instance at an address, for the client of a [Service]. Each method call is
// one question. A Remote must not be used concurrently.
type Remote struct {
	port *pool
	addr string
	to   nodeid.ID

	// Answered is the proven identity of the instance that answered the last call.
	Answered Identity
}

// To returns a Remote for the instance at addr. If `to` is not zero, only that instance gets the
// questions.
func (p *Port) To(addr string, to nodeid.ID) *Remote {
	return &Remote{port: &p.pool, addr: addr, to: to}
}

// Invoke sends a question once and waits for the answer. The encoded question may have at most 2
// MiB, the answer at most 32 MiB. Errors:
//
//   - [*Failure]: the instance has answered with a reason why it does not do what the question
//     asks;
//
//   - ErrRefused: the connection was refused, because no process listens at the address;
//
//   - ErrForeign: the process at the address is not an instance of this cluster;
//
//   - ErrVersion: the instance runs another version of the protocol, or does not have the method;
//
//   - ErrOther: another instance uses the address, see [OtherError];
//
//   - ErrSilent: there was no answer, which proves nothing. The error wraps the cause of ctx if ctx
//     has ended. If ctx has no deadline, a question waits for twice the dial timeout. After a
//     failed dial, a question waits until the address may be dialed again, or fails immediately
//     if the deadline of ctx is earlier;
//
//   - ErrFull: a limit of this port or of the peer is reached;
//
//   - ErrTooLarge, ErrClosed: the question is too large, or this port is closed.
func (r *Remote) Invoke(ctx context.Context, method string, question, answer any, _ ...grpc.CallOption) error {
	body, err := proto.Marshal(question.(proto.Message))
	if err != nil {
		return err
	}
	var said []byte
	if said, r.Answered, err = r.port.ask(ctx, r.addr, r.to, method, body); err != nil {
		return err
	}
	if err := proto.Unmarshal(said, answer.(proto.Message)); err != nil {
		return fmt.Errorf("%w: the answer of %s cannot be decoded: %w", ErrVersion, r.addr, err)
	}
	return nil
}

// NewStream always fails, because a question has a single answer.
func (r *Remote) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, noStream()
}

func (p *pool) ask(ctx context.Context, addr string, to nodeid.ID, method string, question []byte) (answer []byte,
	from Identity, err error) {
	if len(question) > questionBytes {
		return nil, from, fmt.Errorf("%w: a question of %d bytes, the limit is %d", ErrTooLarge, len(question),
			questionBytes)
	}
	var cancel context.CancelFunc
	if _, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, 2*p.config.DialTimeout)
	}
	defer cancel()
	s, err := p.borrow(ctx, addr)
	if err != nil {
		return nil, from, err
	}
	defer p.release(s)
	from = s.d.peer
	if !to.IsZero() && from.Instance != to {
		return nil, from, &OtherError{Addr: addr, Asked: to, Answered: from.Instance}
	}
	stream, err := s.d.question(ctx, method)
	failed := false
	if err == nil {
		sendQuestion(stream, question)
		var first *wire.Answer
		if first, err = stream.Recv(); err == nil {
			if first.Refusal != nil {
				return nil, from, refused(addr, first.Refusal)
			}
			failed = first.Failed
			answer, err = p.hearOut(from.claimant(), addr, first, stream.Recv)
		}
	}
	switch {
	case p.ctx.Err() != nil:
		return nil, from, ErrClosed
	case s.life.Err() != nil:
		return nil, from, p.outlived(addr)
	case err == nil && failed:
		return nil, from, &Failure{Body: answer}
	case err == nil:
		return answer, from, nil
	case errors.Is(err, ErrFull):
		return nil, from, err
	case status.Code(err) == codes.Unimplemented:
		return nil, from, fmt.Errorf("%w: %s runs a version of mortise that does not know this question", ErrVersion, addr)
	case late(ctx, err): // the connection may be dead, so the next question uses another connection
		p.forget(s)
	}
	return nil, from, s.d.explain(ctx, err)
}

func (d *dialed) question(ctx context.Context, method string) (grpc.BidiStreamingClient[wire.Question, wire.Answer],
	error) {
	stream, err := d.cc.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method)
	return &grpc.GenericClientStream[wire.Question, wire.Answer]{ClientStream: stream}, err
}

// sendQuestion sends a question in pieces. If sending fails, the next Recv returns the reason.
func sendQuestion(stream grpc.BidiStreamingClient[wire.Question, wire.Answer], question []byte) {
	for first := true; first || len(question) > 0; first = false {
		piece := question[:min(len(question), pieceBytes)]
		question = question[len(piece):]
		if stream.Send(&wire.Question{Body: piece}) != nil {
			return
		}
	}
	_ = stream.CloseSend()
}

func (p *pool) hearOut(from fair.Identity, addr string, first *wire.Answer,
	recv func() (*wire.Answer, error)) (answer []byte, err error) {
	held := 0
	defer func() { p.holds.heard.Give(from, held) }()
	for next := first; err == nil; next, err = recv() {
		if p.holds.heard.Take(from, len(next.Body)) != nil {
			const text = "%w: the answer of %s has more than %d bytes, or too many answers come in"
			return nil, fmt.Errorf(text, ErrFull, addr, answerBytes)
		}
		held += len(next.Body)
		if answer == nil {
			answer = next.Body
			continue
		}
		answer = append(answer, next.Body...)
	}
	if err == io.EOF {
		return answer, nil
	}
	return nil, err
}

// late reports whether a call failed because its deadline passed. The peer may report this before
// ctx ends.
func late(ctx context.Context, err error) bool {
	return ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded
}
