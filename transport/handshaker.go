package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

var errNoListener = errors.New("transport: a connection that this port's listener has not accepted") // cannot happen

// handshaker performs the handshakes of accepted connections for gRPC: TLS, then the hellos. It
// takes links away from gRPC, because links do not use HTTP/2.
type handshaker struct {
	credentials.TransportCredentials
	port *table
}

func newHandshaker(p *table) handshaker {
	guard := insecure.NewCredentials()
	if p.config.TLS != nil {
		config := p.config.TLS.ServerTLS()
		// Hellos are bound to keying material that is unique only in TLS 1.3.
		config.MinVersion = max(config.MinVersion, tls.VersionTLS13)
		guard = credentials.NewTLS(config)
	}
	return handshaker{guard, p}
}

// ServerHandshake sets no deadline, because gRPC has set one.
func (h handshaker) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	accepted, ok := acceptedOn(raw.RemoteAddr())
	if !ok {
		return nil, nil, errNoListener
	}
	conn, info, err := h.shake(raw, accepted)
	if err != nil && !errors.Is(err, credentials.ErrConnDispatched) && accepted.worked(err) {
		accepted.turn.charge(refusedCost - 1)
	}
	return conn, info, err
}

func (h handshaker) shake(raw net.Conn, accepted *accepted) (net.Conn, credentials.AuthInfo, error) {
	defer accepted.shaken()
	conn, info, err := h.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		switch {
		case wentAway(err), brokeOff(err), errors.Is(err, errPaced):
		case accepted.turn.outOfTime(err):
			h.port.notices.info("transport: more instances connect at once than this one has processors for: "+
				"a handshake was given up, and its instance tries again", "from", raw.RemoteAddr(), "why", err)
		default:
			h.port.notices.warn("transport: refused a connection", "from", raw.RemoteAddr(), "why",
				h.port.config.TLS.Explain(err))
		}
		return conn, info, err
	}
	var secure *tls.ConnectionState
	if t, ok := info.(credentials.TLSInfo); ok {
		secure = &t.State
	}
	s := newStream(h.port.base, conn, secure, func() { raw.Close() })
	if s.peer, err = h.port.tierOf(secure); err != nil {
		h.port.notices.warn("transport: refused a connection", "from", raw.RemoteAddr(), "why", err)
		return nil, nil, err
	}
	who, err := h.port.receive(s, raw.RemoteAddr(), h.port.meet(accepted, s.peer))
	if err != nil {
		if errors.Is(err, ErrSecured) {
			h.port.notices.warn("transport: refused a connection", "from", raw.RemoteAddr(), "why", err)
		}
		return nil, nil, err
	}
	if secure != nil {
		h.port.guard.add(accepted, raw.RemoteAddr().String(), secure, s.peer.NotAfter)
	}
	accepted.proven()
	h.port.dials.reached(who.peer.Addr)
	if who.kind == wire.Hello_LINK {
		accepted.shaken() // must be called before another goroutine uses the connection
		h.port.tasks.Go(func() { h.port.welcome(raw, s, who) })
		return nil, nil, credentials.ErrConnDispatched
	}
	accepted.owner = who.peer.claimant()
	h.port.holds.owners.own(who.peer.Instance, accepted)
	accepted.serves() // must precede the load of self, so that a new incarnation closes conn
	self := h.port.self.Load()
	if err := h.port.answer(s, self, who, 0); err != nil {
		return nil, nil, err
	}
	accepted.tally = h.port.tally(&unread{Conn: conn, in: s.in}, accepted, who.peer)
	return accepted.tally, greeted{peer: who.peer, self: self.Instance()}, nil
}

func (h handshaker) Clone() credentials.TransportCredentials {
	return handshaker{h.TransportCredentials.Clone(), h.port}
}

func (p *base) tally(conn net.Conn, c *accepted, peer Identity) *tallied {
	return newTally(conn, c.owner.Secret, p.holds.unpaid, func() {
		p.notices.warnOf(peer.Instance.String(), "transport: closed the connection of a peer that begins and resets "+
			"calls, or sends control frames, far faster than an instance does: stop the program named here, and "+
			"replace its secret if it is not yours", "instance", peer.Instance, "peer", peer.Peer.Tier,
			"name", peer.Peer.Name, "remote", conn.RemoteAddr())
		if c.owner.Secret != "" {
			p.holds.meetings.Charge(c.owner.Secret, time.Now(), floodCost, floodWait)
		}
		c.turn.charge(floodCost)
		c.Close()
	})
}

// meet takes a place for the connection of a peer with a derived secret. If there is none, it
// returns the refusal for the peer.
func (p *base) meet(c *accepted, peer capability.Peer) *wire.Refusal {
	if peer.Tier == capability.Root {
		return nil
	}
	who := claimant(nodeid.ID{}, peer)
	err := p.holds.accepted.Take(who, 1)
	if err == nil {
		c.holds(func() { p.holds.accepted.Give(who, 1) })
		if p.holds.meetings.Spend(who.Secret, time.Now(), 1) {
			return nil
		}
		err = fmt.Errorf("at most %d new ones at once, and then %d a second", meetingBurst, time.Second/meetingEvery)
	}
	p.notices.warnOf(peer.Name, "transport: refused a connection: its derived secret has too many, and further ones "+
		"are refused; stop the programs that open them, or give each group of programs a secret of its own",
		"peer", peer.Tier, "name", peer.Name, "from", c.Conn.RemoteAddr(), "why", err)
	return &wire.Refusal{Reason: wire.Refusal_FULL, Text: "connections of a derived secret: " + err.Error()}
}
