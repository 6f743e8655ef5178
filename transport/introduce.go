package transport

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/mortise-lock/mortise/internal/formats"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// bindingBytes is the length of the binding. Without TLS, it is also the length of each random
// number.
const bindingBytes = formats.BindingBytes

func (s *stream) bind(as role, secure *tls.ConnectionState) ([]byte, error) {
	if secure != nil {
		return secure.ExportKeyingMaterial(formats.Exporter, nil, bindingBytes)
	}
	var dialed, accepted [bindingBytes]byte
	own, other := &dialed, &accepted
	if as == acceptor {
		own, other = &accepted, &dialed
		if err := s.hearNonce(other); err != nil {
			return nil, err
		}
	}
	s.random(own[:])
	b, _ := s.begin()
	if err := s.write(append(b, own[:]...)); err != nil {
		return nil, err
	}
	if as == dialer {
		if err := s.hearNonce(other); err != nil {
			return nil, err
		}
	}
	sum := sha256.New()
	sum.Write([]byte(formats.PlainContext))
	sum.Write(dialed[:])
	sum.Write(accepted[:])
	return sum.Sum(nil), nil
}

func (s *stream) hearNonce(nonce *[bindingBytes]byte) error {
	if err := s.hearPreface(); err != nil {
		return err
	}
	if _, err := io.ReadFull(s.in, nonce[:]); err != nil {
		return broken(err)
	}
	return nil
}

// introduce exchanges hellos on a dialed connection. If intended is zero, any instance may answer.
func (p *base) introduce(ctx context.Context, s *stream, addr string, self *Self, kind wire.Hello_Kind,
	intended nodeid.ID, number uint64) (*introduction, error) {
	stop := context.AfterFunc(ctx, s.kill)
	who, err := p.exchange(ctx, s, addr, self, kind, intended, number)
	if !stop() {
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, context.Cause(ctx))
	}
	return who, err
}

func (p *base) exchange(ctx context.Context, s *stream, addr string, self *Self, kind wire.Hello_Kind,
	intended nodeid.ID, number uint64) (*introduction, error) {
	binding, err := s.bind(dialer, s.secure)
	if err != nil {
		return nil, s.explain(ctx, addr, err)
	}
	own, err := p.hello(self, kind, intended, number)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // an ended incarnation must not send a hello
		return nil, s.explain(ctx, addr, ctx.Err())
	}
	_ = s.greet(greeting(self.Key, dialer, binding, own, own)) // the next read returns its error
	g, err := s.hearGreeting()
	if err != nil {
		return nil, s.explain(ctx, addr, err)
	}
	if g.Refusal != nil {
		if g.Refusal.Reason == wire.Refusal_COPY {
			p.notices.warn("transport: a peer is linked to another process with this node's identity: "+
				"one of the two runs on a copied directory; stop it", "addr", addr, "why", clip(g.Refusal.Text))
		}
		return nil, refused(addr, g.Refusal)
	}
	who, refusal := p.verify(g, acceptor, binding, own)
	if refusal != nil {
		err := kindOf(refusal.Reason)
		if errors.Is(err, ErrGarbage) {
			err = ErrForeign
			p.notices.warn("transport: the process at an address has not proved which instance it is", "addr", addr,
				"why", refusal.Text)
		}
		return nil, fmt.Errorf("%w: %s: %s", err, addr, refusal.Text)
	}
	who.peer.proves(s.peer)
	if !intended.IsZero() && who.peer.Instance != intended {
		return nil, &OtherError{Addr: addr, Asked: intended, Answered: who.peer.Instance}
	}
	return who, nil
}

// receive reads and verifies the hello of a dialer. After an error, the caller must close the
// connection. If receive refused the hello, it has already sent the reason to the dialer. full is
// the refusal if there is no place for the connection, and otherwise nil.
func (p *table) receive(s *stream, remote net.Addr, full *wire.Refusal) (*introduction, error) {
	binding, err := s.bind(acceptor, s.secure)
	if err != nil {
		return nil, err
	}
	g, err := s.hearGreeting()
	if err != nil {
		return nil, err
	}
	if full != nil {
		_ = s.greet(&wire.Greeting{Refusal: full})
		return nil, kindOf(full.Reason)
	}
	who, refusal := p.verify(g, dialer, binding, nil)
	if refusal != nil {
		p.noteUnproven(g, remote, refusal)
		_ = s.greet(&wire.Greeting{Refusal: refusal})
		return nil, kindOf(refusal.Reason)
	}
	who.peer.proves(s.peer)
	return who, nil
}

func (p *base) answer(s *stream, self *Self, who *introduction, number uint64) error {
	own, err := p.hello(self, who.kind, who.peer.Instance, number)
	if err != nil {
		s.kill() // otherwise the peer would wait for this node's hello
		return err
	}
	return s.greet(greeting(self.Key, acceptor, who.binding, who.raw, own))
}
