package transport

import (
	"context"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Ask puts a question to the instance at addr, and returns its answer and which instance has given it, which that has proved. If `to`
// is not zero, another instance is not asked. The question is not repeated. Errors:
//
//   - ErrRefused: the connection was refused, nobody listens there;
//   - ErrForeign: who is there is not one of us; ErrVersion: one of us with another version of the protocol;
//   - ErrOther: another instance is there, see [OtherError];
//   - ErrSilent: no answer, which proves nothing; it wraps the cause of ctx if ctx ended. Without a deadline in ctx a question waits
//     twice the dial timeout;
//   - ErrFull, ErrTooLarge, ErrClosed: of this port.
func (p *Port) Ask(ctx context.Context, addr string, to Instance, question []byte) (answer []byte, from Identity, err error) {
	if len(question) > p.config.MessageBytes-slackBytes {
		return nil, from, ErrTooLarge
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 2*p.config.DialTimeout)
		defer cancel()
	}
	s, err := p.borrow(ctx, addr)
	if err != nil {
		return nil, from, err
	}
	defer p.release(s)
	from = s.d.peer
	if !to.IsZero() && from.Instance != to {
		return nil, from, &OtherError{Addr: addr, Asked: to, Answered: from.Instance}
	}
	reply, err := s.d.Ask(ctx, &wire.Question{Body: question})
	switch {
	case s.life.Err() != nil:
		return nil, from, p.outlived(addr)
	case err != nil:
		if late(ctx, err) { // the connection may be as silent as the peer: the next question gets another
			p.forget(s)
		}
		return nil, from, s.d.explain(ctx, err)
	case reply.Refusal != nil:
		return nil, from, refused(addr, reply.Refusal)
	}
	return reply.Body, from, nil
}

// late reports whether a call failed because its time was over. The peer knows the deadline too, and its word may come before ours.
func late(ctx context.Context, err error) bool {
	return ctx.Err() != nil || status.Code(err) == codes.DeadlineExceeded
}

// Ask answers a question that came in.
func (s *service) Ask(ctx context.Context, q *wire.Question) (*wire.Answer, error) {
	p := s.port
	from, refusal := p.caller(ctx)
	if refusal != nil {
		return &wire.Answer{Refusal: refusal}, nil
	}
	body, err := p.config.Handler.Ask(ctx, from, q.Body)
	if _, refusal := p.caller(ctx); refusal != nil { // the answer may be of a life that this connection does not speak for
		return &wire.Answer{Refusal: refusal}, nil
	}
	if err == nil && len(body) > p.config.MessageBytes-slackBytes {
		err = ErrTooLarge
	}
	if err != nil {
		return &wire.Answer{Refusal: &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "there is no answer to this question"}}, nil
	}
	return &wire.Answer{Body: body}, nil
}
