package transport

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

var errServes = errors.New("only holders of the root secret, or of a certificate named in TLSPeers, may serve")

// tierOf returns the rights that the verified certificates of a connection grant the peer. Without
// TLS, every peer is of the root tier.
func (p *base) tierOf(secure *tls.ConnectionState) (capability.Peer, error) {
	if p.config.TLS == nil {
		return capability.Peer{Tier: capability.Root}, nil
	}
	if secure == nil {
		return capability.Peer{}, errors.New("transport: a connection without TLS")
	}
	return p.config.TLS.Peer(*secure)
}

// serverOf is like tierOf, for the peer of a dialed connection. It fails unless the peer is of the
// root tier, because an admin client could pose as an instance.
func (p *base) serverOf(addr string, secure *tls.ConnectionState) (capability.Peer, error) {
	peer, err := p.tierOf(secure)
	if err == nil && peer.Tier != capability.Root {
		err = fmt.Errorf("it has the certificate of the %s %q: %w", peer.Tier, peer.Name, errServes)
	}
	if err != nil {
		p.notices.warn("transport: the process at an address is not allowed to serve", "addr", addr, "why", err)
		return capability.Peer{}, fmt.Errorf("%w: %s: %w", ErrForeign, addr, err)
	}
	return peer, nil
}

func (i *Identity) proves(peer capability.Peer) {
	i.Peer = peer
	// Without NotAfter, identities with the same rights are equal.
	i.Peer.NotAfter = time.Time{}
	i.confine()
}

// confine removes the claims that only an instance may make.
func (i *Identity) confine() {
	if i.Peer.Tier != capability.Root {
		i.Addr, i.Raft = "", 0
	}
}

func (i *Identity) serves() bool {
	return i.Peer.Tier == capability.Root
}

func notAnInstance() *wire.Refusal {
	return &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "a derived secret does not allow this: it is for instances"}
}
