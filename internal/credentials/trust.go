package credentials

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

type trust struct {
	cluster string
	pool    *x509.CertPool // authorities of the secret and of the old secrets
	// authorities are the public keys of the certificates in the pool, that of the secret first.
	authorities []ed25519.PublicKey
	now         func() time.Time
	self        Peer
}

func (t *trust) trusts(public ed25519.PublicKey) bool {
	return slices.ContainsFunc(t.authorities, func(a ed25519.PublicKey) bool { return a.Equal(public) })
}

// peer computes the verified chains of dialed connections. It checks the name of both sides: each
// chain must end at an authority in whose zone the name is.
func (t *trust) peer(state tls.ConnectionState) (Peer, error) {
	if len(state.VerifiedChains) == 0 {
		var err error
		if state.VerifiedChains, err = verify(state, t.pool, t.now(), x509.ExtKeyUsageAny); err != nil {
			return Peer{}, err
		}
	}
	leaf, err := leafOf(state)
	if err != nil {
		return Peer{}, err
	}
	for _, chain := range state.VerifiedChains {
		public, ok := chain[len(chain)-1].PublicKey.(ed25519.PublicKey)
		if !ok {
			return Peer{}, errChain
		}
		if err := leaf.VerifyHostname(serverName(anyAuthority, public, t.cluster)); err != nil {
			return Peer{}, err
		}
	}
	p, err := byChain(state.VerifiedChains[0])
	if err != nil {
		return Peer{}, err
	}
	for _, chain := range state.VerifiedChains[1:] { // refuse a peer with ambiguous chains
		other, err := byChain(chain)
		if err != nil || other.Capability.Hash() != p.Capability.Hash() { // its tier follows from it
			return Peer{}, errChain
		}
	}
	p.NotAfter = end(state.VerifiedChains)
	return p, nil
}

// byChain returns what one verified chain proves. The text of a derived certificate determines the
// rights. A text in the leaf is ignored, because the peer itself has signed the leaf.
func byChain(chain []*x509.Certificate) (Peer, error) {
	switch len(chain) {
	case 2:
		return Peer{Tier: Root}, nil
	case 3:
		c, err := textOf(chain[1])
		if err != nil {
			return Peer{}, err
		}
		return Peer{Tier: capability.TierOf(c), Capability: c, Name: c.For()}, nil
	}
	return Peer{}, errChain
}

func (t *trust) recheck(state tls.ConnectionState) error {
	state.VerifiedChains = nil // the current authorities and time must be used
	_, err := t.peer(state)
	return err
}

func (t *trust) own() (Peer, error) { return t.self, nil }

func (t *trust) accepts(state tls.ConnectionState) error {
	_, err := t.peer(state)
	return err
}

// dials verifies the chain, the time and the key usage, as crypto/tls does without
// InsecureSkipVerify, and then what peer checks.
func (t *trust) dials(state tls.ConnectionState) (err error) {
	if state.VerifiedChains, err = verify(state, t.pool, t.now(), x509.ExtKeyUsageServerAuth); err != nil {
		return err
	}
	p, err := t.peer(state)
	if err != nil {
		return err
	}
	return mayServe(p)
}
