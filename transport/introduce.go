package transport

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// exporterLabel names the keying material of a TLS connection that hellos are bound to (RFC 9266).
const exporterLabel = "EXPORTER-mortise-hello-v2"

// bindingBytes is the length of what a hello is bound to, and of each random number that it is made
// of without TLS.
const bindingBytes = 32

// bind returns what the hellos on this connection are bound to. With TLS that is keying material
// that no third party can have on a connection of its own. Without TLS it is made of a random
// number of each side: a hello cannot be repeated, but a party that relays all bytes goes
// unnoticed.
func (s *stream) bind(as role, secure *tls.ConnectionState) ([]byte, error) {
	if secure != nil {
		return secure.ExportKeyingMaterial(exporterLabel, nil, bindingBytes)
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
	sum.Write([]byte("mortise-plain/2\x00"))
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

// introduce exchanges hellos on a connection that this node has dialed. With intended it fails
// unless that instance answers. ctx ends it.
func (p *Port) introduce(ctx context.Context, s *stream, addr string, self *Self, kind wire.Hello_Kind,
	intended Instance, number uint64) (*introduction, error) {
	stop := context.AfterFunc(ctx, s.kill)
	who, err := p.exchange(ctx, s, addr, self, kind, intended, number)
	if !stop() {
		return nil, fmt.Errorf("%w: %s: %w", ErrSilent, addr, context.Cause(ctx))
	}
	return who, err
}

func (p *Port) exchange(ctx context.Context, s *stream, addr string, self *Self, kind wire.Hello_Kind,
	intended Instance, number uint64) (*introduction, error) {
	binding, err := s.bind(dialer, s.secure)
	if err != nil {
		return nil, s.explain(ctx, addr, err)
	}
	own, err := p.hello(self, kind, intended, number)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil { // our life may be over, and nothing more is said in its name
		return nil, s.explain(ctx, addr, ctx.Err())
	}
	_ = s.greet(greeting(self.Key, dialer, binding, own, own)) // what is read next tells why it failed
	g, err := s.hearGreeting()
	if err != nil {
		return nil, s.explain(ctx, addr, err)
	}
	if g.Refusal != nil {
		if g.Refusal.Reason == wire.Refusal_COPY {
			p.notices.warn("transport: a peer is linked to another process with this node's identity: one of the two runs on a copied directory; stop it",
				"addr", addr, "why", clip(g.Refusal.Text))
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

// receive reads the hello of the dialer of a connection. An error ends the connection: the dialer
// has been told why it is refused, unless it is not one of ours.
func (p *Port) receive(s *stream, remote net.Addr) (*introduction, error) {
	binding, err := s.bind(acceptor, s.secure)
	if err != nil {
		return nil, err
	}
	g, err := s.hearGreeting()
	if err != nil {
		return nil, err
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

// answer sends the hello of self in answer to that of a dialer.
func (p *Port) answer(s *stream, self *Self, who *introduction, number uint64) error {
	own, err := p.hello(self, who.kind, who.peer.Instance, number)
	if err != nil {
		s.kill() // else the peer would wait for it
		return err
	}
	return s.greet(greeting(self.Key, acceptor, who.binding, who.raw, own))
}
