package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Ask puts a question to the instance at addr, and returns its answer and which instance has given it,
// as that has proved. If `to` is not zero, another instance is not asked. The question is not repeated.
// A question has at most 2 MiB, an answer at most 32 MiB. Errors:
//
//   - ErrRefused: the connection was refused, nobody listens there;
//   - ErrForeign: who is there is not one of us; ErrVersion: one of us with another version of the protocol;
//   - ErrOther: another instance is there, see [OtherError];
//   - ErrSilent: no answer, which proves nothing; it wraps the cause of ctx if ctx ended. Without a deadline in ctx a question waits
//     twice the dial timeout. While the address pauses after a failed dial a question waits for the end of the pause, and fails
//     at once if its context ends before that;
//   - ErrFull: a bound of this port or of the other one is reached;
//   - ErrTooLarge, ErrClosed: of this port.
func (p *Port) Ask(ctx context.Context, addr string, to Instance, question []byte) (answer []byte, from Identity, err error) {
	if len(question) > questionBytes {
		return nil, from, fmt.Errorf("%w: a question of %d bytes, the limit is %d", ErrTooLarge, len(question), questionBytes)
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
	stream, err := s.d.Ask(ctx)
	if err == nil {
		utter(stream, question)
		var first *wire.Answer
		if first, err = stream.Recv(); err == nil {
			if first.Refusal != nil {
				return nil, from, refused(addr, first.Refusal)
			}
			answer, err = p.hearOut(from.Instance, addr, first, stream.Recv)
		}
	}
	switch {
	case p.ctx.Err() != nil:
		return nil, from, ErrClosed
	case s.life.Err() != nil:
		return nil, from, p.outlived(addr)
	case err == nil:
		return answer, from, nil
	case errors.Is(err, ErrFull):
		return nil, from, err
	case late(ctx, err): // the connection may be as silent as the peer: the next question gets another
		p.forget(s)
	}
	return nil, from, s.d.explain(ctx, err)
}

// utter sends a question in pieces. If that fails, the next Recv knows why.
func utter(stream grpc.BidiStreamingClient[wire.Question, wire.Answer], question []byte) {
	for first := true; first || len(question) > 0; first = false {
		piece := question[:min(len(question), pieceBytes)]
		question = question[len(piece):]
		if stream.Send(&wire.Question{Body: piece}) != nil {
			return
		}
	}
	_ = stream.CloseSend()
}

// hearOut gathers the pieces of an answer, of which first has come.
func (p *Port) hearOut(from Instance, addr string, first *wire.Answer, recv func() (*wire.Answer, error)) (answer []byte, err error) {
	held := 0
	defer func() { p.holds.heard.give(from, held) }()
	for next := first; err == nil; next, err = recv() {
		if !p.holds.heard.take(from, len(next.Body)) {
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

// asked is a question as the instance that is asked sees it.
type asked = grpc.BidiStreamingServer[wire.Question, wire.Answer]

// late reports whether a call failed because its time was over. The peer knows the deadline too, and its word may come before ours.
func late(ctx context.Context, err error) bool {
	return ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded
}

// Ask answers a question that came in. The whole of it must arrive within twice the dial timeout,
// else its connection is closed.
func (s *service) Ask(stream asked) error {
	p := s.port
	conn, ok := acceptedOn(remoteOf(stream.Context()))
	if !ok {
		return noConnection()
	}
	arrived := p.holds.arriving.enter(conn, 2*p.config.DialTimeout)
	from, body, refusal, err := p.question(stream)
	defer func() { p.holds.held.give(from.Instance, len(body)) }()
	if !arrived() || err != nil {
		return err
	}
	if refusal == nil && !p.holds.questions.take(from.Instance, 1) {
		refusal = &wire.Refusal{Reason: wire.Refusal_FULL, Text: "too many questions at once"}
	} else if refusal == nil {
		defer p.holds.questions.give(from.Instance, 1)
	}
	var answer []byte
	if refusal == nil {
		answer, refusal = p.handle(stream.Context(), from, body)
	}
	if refusal != nil {
		return stream.Send(&wire.Answer{Refusal: refusal})
	}
	defer p.holds.told.give(from.Instance, len(answer))
	return p.reply(stream, conn, answer)
}

// question gathers a question. The bytes of what it returns are held for the asker, also if it
// returns an error.
func (p *Port) question(stream asked) (from Identity, body []byte, refusal *wire.Refusal, err error) {
	first, err := firstOf(p, stream.Context(), stream.Recv)
	if err != nil {
		return from, nil, nil, err
	}
	if from, refusal = p.caller(stream.Context()); refusal != nil {
		return from, nil, refusal, nil
	}
	for next := first; err == nil; next, err = stream.Recv() {
		if len(body)+len(next.Body) > questionBytes || !p.holds.held.take(from.Instance, len(next.Body)) {
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

// handle has the handler answer. The bytes of what it returns are held for the asker.
func (p *Port) handle(ctx context.Context, from Identity, body []byte) ([]byte, *wire.Refusal) {
	asking, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := p.config.Handler.Ask(asking, from, body)
	if _, refusal := p.caller(ctx); refusal != nil { // the answer may be of a life that this connection does not speak for
		return nil, refusal
	}
	switch {
	case err != nil:
		return nil, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "there is no answer to this question"}
	case !p.holds.told.take(from.Instance, len(answer)):
		text := fmt.Sprintf("an answer of %d bytes is more than can wait for its reader", len(answer))
		return nil, &wire.Refusal{Reason: wire.Refusal_FULL, Text: text}
	}
	return answer, nil
}

// reply sends an answer in pieces. An asker that does not read it in time loses the connection.
func (p *Port) reply(stream asked, conn *accepted, answer []byte) error {
	patience := time.AfterFunc(allowance(2*p.config.DialTimeout, uint64(len(answer))), func() { conn.Close() })
	defer patience.Stop()
	for first := true; first || len(answer) > 0; first = false {
		piece := answer[:min(len(answer), pieceBytes)]
		answer = answer[len(piece):]
		if err := stream.Send(&wire.Answer{Body: piece}); err != nil {
			return err
		}
	}
	return nil
}
