package transport

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type admission struct {
	link   *link
	self   *Self
	number uint64
}

// accept decides whether a stream that a peer opened becomes a link. It blocks until this is
// decided, and returns the link or the reason for refusing the stream.
func (p *table) accept(ctx context.Context, who *introduction, s *stream) (admission, *wire.Refusal) {
	for ctx.Err() == nil {
		a, wait, refusal := p.tryAccept(who, s)
		if wait == nil {
			return a, refusal
		}
		select {
		case <-wait:
		case <-ctx.Done():
		case <-p.closing:
			return admission{}, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "this node is closing"}
		}
	}
	return admission{}, &wire.Refusal{Reason: wire.Refusal_CROSSED, Text: "the dialer gave up the stream"}
}

func (p *table) tryAccept(who *introduction, s *stream) (a admission, wait <-chan struct{}, refusal *wire.Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	self := p.self.Load()
	from := who.peer.Instance
	no := func(reason wire.Refusal_Reason, text string) (admission, <-chan struct{}, *wire.Refusal) {
		return admission{}, nil, &wire.Refusal{Reason: reason, Text: text}
	}
	l := p.links[from]
	switch {
	case p.shut:
		return no(wire.Refusal_FAILED, "this node is closing")
	case !who.intended.IsZero() && who.intended != self.Instance(): // changed while accept waited
		return no(wire.Refusal_FAILED, "this instance has begun a new incarnation")
	case from == self.Instance():
		return no(wire.Refusal_MALFORMED, "the dialer has the identity of this node, which does not connect to itself")
	case l == nil:
		if d := p.dying[from]; d != nil {
			return admission{}, d.done, nil
		}
		if len(p.links) >= p.config.Links {
			return no(wire.Refusal_FULL, "this node has reached its limit of links")
		}
		l = p.newLink(from, who.peer)
	case l.state == dialing && l.before != nil && !isClosed(l.before):
		return admission{}, l.before, nil
	case l.state == dialing && l.greeted && nodeid.Compare(self.Instance(), from) < 0:
		return admission{}, l.settled, nil // wait for the result of this node's own dial
	case l.state == dialing: // this node has not sent its hello, or the peer's dial wins
		l.abandon()
	default:
		if refusal := p.replaces(who, l, s); refusal != nil {
			return admission{}, nil, refusal
		}
		l.stream.kill()
		return admission{}, l.done, nil
	}
	p.number++
	l.rise(who, s)
	return admission{link: l, self: self, number: p.number}, nil, nil
}

// replaces returns nil if a new stream of a peer replaces the existing stream, and otherwise a
// refusal. The caller holds mu.
func (p *table) replaces(who *introduction, l *link, s *stream) *wire.Refusal {
	args := []any{"instance", l.instance, "link", l.stream.conn.RemoteAddr(), "other", s.conn.RemoteAddr()}
	same := who.boot == l.boot
	switch {
	case same && who.number <= l.number:
		return &wire.Refusal{Reason: wire.Refusal_CROSSED, Text: "a newer stream between us exists"}
	case !same && nodeid.Count(who.peer.Life) <= nodeid.Count(l.peer.Life):
		p.tell(slog.LevelWarn, "transport: refused a second process with the identity of a linked instance: "+
			"one of the two runs on a copied directory; stop it", l.instance, args)
		return &wire.Refusal{Reason: wire.Refusal_COPY,
			Text: fmt.Sprintf("another process with this identity is linked here from %v", l.stream.conn.RemoteAddr())}
	}
	p.tell(slog.LevelInfo, "transport: an instance has replaced its link", l.instance, args)
	return nil
}

// tell logs on another goroutine, because its caller holds mu.
func (p *base) tell(level slog.Level, text string, about nodeid.ID, args []any) {
	p.tasks.Go(func() { p.notices.tell(level, about.String(), text, args...) })
}
