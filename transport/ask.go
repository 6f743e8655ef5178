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

// Ask puts a question to the instance `to` (0: whoever is there) at addr, and returns its answer.
// It does not repeat the question. An answer from another instance is none. A question has at most
// 2 MiB, an answer at most 32 MiB. Errors:
//
//   - ErrRefused: the connection was refused, nobody listens there;
//   - ErrForeign: who is there is not one of us; ErrVersion: one of us with another version of the protocol;
//   - ErrOther: another instance is there, see [OtherError];
//   - ErrSilent: no answer, which proves nothing; it wraps the cause of ctx if ctx ended. Without a deadline in ctx a question waits
//     twice the dial timeout;
//   - ErrFull: a bound of this port or of the other one is reached;
//   - ErrTooLarge, ErrClosed: of this port.
func (p *Port) Ask(ctx context.Context, addr string, to Instance, question []byte) ([]byte, error) {
	if len(question) > questionBytes {
		return nil, fmt.Errorf("%w: a question of %d bytes, the limit is %d", ErrTooLarge, len(question), questionBytes)
	}
	cancel := func() {}
	if _, ok := ctx.Deadline(); ok {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithTimeout(ctx, 2*p.config.DialTimeout)
	}
	defer cancel()
	s, err := p.borrow(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer p.release(s)
	self := p.self.Load()
	stream, err := s.d.Ask(ctx)
	if err == nil {
		utter(stream, self.greet(to, 0), question)
		var first *wire.Answer
		if first, err = stream.Recv(); err == nil {
			if first.Refusal != nil {
				return nil, refused(addr, to, first.Refusal)
			}
			if err := self.answered(addr, to, first.Hello); err != nil {
				return nil, err
			}
			var answer []byte
			if answer, err = p.hearOut(addr, first, stream.Recv); err == nil {
				return answer, nil
			}
		}
	}
	switch {
	case p.ctx.Err() != nil:
		return nil, ErrClosed
	case errors.Is(err, ErrFull):
		return nil, err
	case late(ctx, err): // the connection may be as silent as the peer: the next question gets another
		p.forget(s)
	}
	return nil, s.d.explain(ctx, err)
}

// utter sends a question in pieces. If that fails, the next Recv knows why.
func utter(stream grpc.BidiStreamingClient[wire.Question, wire.Answer], hello *wire.Hello, question []byte) {
	for first := true; first || len(question) > 0; first = false {
		piece := question[:min(len(question), pieceBytes)]
		question = question[len(piece):]
		if stream.Send(&wire.Question{Hello: hello, Body: piece}) != nil {
			return
		}
		hello = nil
	}
	_ = stream.CloseSend()
}

// hearOut gathers the pieces of an answer, of which first has come.
func (p *Port) hearOut(addr string, first *wire.Answer, recv func() (*wire.Answer, error)) (answer []byte, err error) {
	held := 0
	defer func() { p.holds.heard.give(addr, held) }()
	for next := first; err == nil; next, err = recv() {
		if !p.holds.heard.take(addr, len(next.Body)) {
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
	conn, ok := acceptedOf(stream.Context())
	if !ok {
		return noConnection()
	}
	arrived := p.holds.arriving.enter(conn, 2*p.config.DialTimeout)
	first, body, refusal, err := p.question(stream)
	from := Instance(first.GetHello().GetInstance())
	defer p.holds.held.give(from, len(body))
	if !arrived() || err != nil {
		return err
	}
	self := p.self.Load()
	if refusal == nil && !p.holds.questions.take(from, 1) {
		refusal = &wire.Refusal{Reason: wire.Refusal_FULL, Text: "too many questions at once"}
	} else if refusal == nil {
		defer p.holds.questions.give(from, 1)
	}
	var answer []byte
	if refusal == nil {
		answer, refusal = p.answer(stream.Context(), first.Hello, body)
	}
	if refusal != nil {
		return stream.Send(&wire.Answer{Refusal: refusal})
	}
	defer p.holds.told.give(from, len(answer))
	return p.tell(stream, conn, self.greet(from, 0), answer)
}

// question gathers a question. The bytes of what it returns are held for the asker, also if it
// returns an error.
func (p *Port) question(stream asked) (first *wire.Question, body []byte, refusal *wire.Refusal, err error) {
	if first, err = firstOf(p, stream.Context(), stream.Recv); err != nil {
		return nil, nil, nil, err
	}
	if r := p.judgeCall(stream.Context(), first.Hello); r != nil {
		p.noteRefusal("transport: refused a question", stream.Context(), first.Hello, r)
		return first, nil, r, nil
	}
	from := Instance(first.Hello.Instance)
	for next := first; err == nil; next, err = stream.Recv() {
		if len(body)+len(next.Body) > questionBytes || !p.holds.held.take(from, len(next.Body)) {
			text := fmt.Sprintf("a question of more than %d bytes, or too many at once", questionBytes)
			return first, body, &wire.Refusal{Reason: wire.Refusal_FULL, Text: text}, nil
		}
		body = append(body, next.Body...)
	}
	if err == io.EOF {
		err = nil
	}
	return first, body, nil, err
}

// answer has the handler answer. The bytes of what it returns are held for the asker.
func (p *Port) answer(ctx context.Context, hello *wire.Hello, body []byte) ([]byte, *wire.Refusal) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	answer, err := p.config.Handler.Ask(ctx, hello.Addr, body)
	switch {
	case err != nil:
		text := fmt.Sprintf("no answer from instance %x", uint64(p.self.Load().Instance))
		return nil, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: text}
	case !p.holds.told.take(Instance(hello.Instance), len(answer)):
		text := fmt.Sprintf("an answer of %d bytes is more than can wait for its reader", len(answer))
		return nil, &wire.Refusal{Reason: wire.Refusal_FULL, Text: text}
	}
	return answer, nil
}

// tell sends an answer in pieces. An asker that does not read it in time loses the connection.
func (p *Port) tell(stream asked, conn *accepted, hello *wire.Hello, answer []byte) error {
	patience := time.AfterFunc(allowance(2*p.config.DialTimeout, uint64(len(answer))), func() { conn.Close() })
	defer patience.Stop()
	for first := true; first || len(answer) > 0; first = false {
		piece := answer[:min(len(answer), pieceBytes)]
		answer = answer[len(piece):]
		if err := stream.Send(&wire.Answer{Hello: hello, Body: piece}); err != nil {
			return err
		}
		hello = nil
	}
	return nil
}
