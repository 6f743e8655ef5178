package transport

import (
	"context"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// accept decides about a stream that a peer has opened with hello, and waits as long as that needs. It returns the link that the
// stream now is, or why not. See the package comment for the rule.
func (p *Port) accept(ctx context.Context, hello *wire.Hello, s *stream) (*link, *wire.Refusal) {
	for ctx.Err() == nil {
		l, wait, refusal := p.tryAccept(hello, s)
		if l != nil || refusal != nil {
			return l, refusal
		}
		select {
		case <-wait:
		case <-ctx.Done():
		case <-p.closing:
			return nil, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "this node is closing"}
		}
	}
	return nil, &wire.Refusal{Reason: wire.Refusal_CROSSED, Text: "the stream was given up by its dialer"}
}

func (p *Port) tryAccept(hello *wire.Hello, s *stream) (l *link, wait <-chan struct{}, refusal *wire.Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	self := p.self.Load()
	if r := self.refuse(hello); r != nil { // also after waiting: we may be another by now
		return nil, nil, r
	}
	from := Instance(hello.Instance)
	switch l = p.links[from]; {
	case p.shut:
		return nil, nil, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "this node is closing"}
	case from == self.Instance:
		return nil, nil, &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "a node needs no stream to itself"}
	case l == nil:
		if d := p.dying[from]; d != nil {
			return nil, d.done, nil
		}
		if len(p.links) >= p.config.Links {
			return nil, nil, &wire.Refusal{Reason: wire.Refusal_FULL, Text: "this node has as many links as it may"}
		}
		l = p.newLink(from, identity(hello))
	case l.state == dialing && l.before != nil && !isClosed(l.before):
		return nil, l.before, nil
	case l.state == dialing && l.greeted && self.Instance < from:
		return nil, l.settled, nil // our own dial decides
	case l.state == dialing: // nothing of our dial has been heard there, or theirs counts more
		l.abandon()
		if bug("any-end-is-a-down") {
			p.tasks.Go(func() { p.config.Handler.Down(l.peer, ErrNoLink) })
		}
	case hello.Number <= l.number:
		return nil, nil, &wire.Refusal{Reason: wire.Refusal_CROSSED, Text: "a newer stream between us exists"}
	default: // the peer has lost the stream that we still see
		l.stream.kill()
		return nil, l.done, nil
	}
	p.number++
	l.rise(identity(hello), hello.Number, s)
	l.queue.say(self.greet(from, p.number))
	return l, nil, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
