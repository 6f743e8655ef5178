package transport

import (
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Ask puts a question to the instance `to` (0: whoever is there) at addr, and returns its answer. It does not repeat the question. An
// answer from another instance is none. Errors:
//
//   - ErrRefused: the connection was refused, nobody listens there;
//   - ErrForeign: who is there is not one of us; ErrVersion: one of us with another version of the protocol;
//   - ErrOther: another instance is there, see [OtherError];
//   - ErrSilent: no answer, which proves nothing; it wraps the cause of ctx if ctx ended. Without a deadline in ctx a question waits
//     twice the dial timeout;
//   - ErrFull, ErrTooLarge, ErrClosed: of this port.
func (p *Port) Ask(ctx context.Context, addr string, to Instance, question []byte) ([]byte, error) {
	if len(question) > p.config.MessageBytes-slackBytes {
		return nil, ErrTooLarge
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*p.config.DialTimeout)
		defer cancel()
	}
	s, err := p.borrow(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer p.release(s)
	self := p.self.Load()
	answer, err := s.d.Ask(ctx, &wire.Question{Hello: self.greet(to, 0), Body: question})
	switch {
	case err != nil && p.ctx.Err() != nil:
		return nil, ErrClosed
	case err != nil:
		if late(ctx, err) { // the connection may be as silent as the peer: the next question gets another
			p.forget(s)
		}
		return nil, s.d.explain(ctx, err)
	case answer.Refusal != nil:
		return nil, refused(addr, to, answer.Refusal)
	}
	if err := self.answered(addr, to, answer.Hello); err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// late reports whether a call failed because its time was over. The peer knows the deadline too, and its word may come before ours.
func late(ctx context.Context, err error) bool {
	return ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded
}

// Ask answers a question that came in.
func (s *service) Ask(ctx context.Context, q *wire.Question) (*wire.Answer, error) {
	p := s.port
	self := p.self.Load()
	if r := p.judge(ctx, q.Hello); r != nil {
		p.noteRefusal("transport: refused a question", ctx, q.Hello, r)
		return &wire.Answer{Refusal: r}, nil
	}
	body, err := p.config.Handler.Ask(ctx, q.Hello.Addr, q.Body)
	if err == nil && len(body) > p.config.MessageBytes-slackBytes {
		err = ErrTooLarge
	}
	if err != nil {
		return &wire.Answer{Refusal: &wire.Refusal{Reason: wire.Refusal_FAILED, Text: fmt.Sprintf("no answer from instance %v", self.Instance)}}, nil
	}
	return &wire.Answer{Hello: self.greet(Instance(q.Hello.Instance), 0), Body: body}, nil
}
