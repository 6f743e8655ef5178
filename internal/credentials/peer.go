package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

type (
	// Tier is [capability.Tier].
	Tier = capability.Tier
	// Peer is [capability.Peer].
	Peer = capability.Peer
)

// The tiers, see [capability.Tier].
const (
	Root   = capability.Root
	Member = capability.Member
	Guest  = capability.Guest
)

// Verifier is the part of a [Source] that a transport needs. Its methods are safe for concurrent
// use.
type Verifier interface {
	ServerTLS() *tls.Config
	ClientTLS() *tls.Config
	Explain(err error) string
	Peer(tls.ConnectionState) (Peer, error)
	Recheck(tls.ConnectionState) error
}

var _ Verifier = (*Source)(nil)

var errServer = errors.New("credentials: the certificate of the dialed peer is not for serving")

// mayServe refuses a dialed peer that is not of the root tier. Otherwise any guest could pose as an
// instance.
func mayServe(p Peer) error {
	if p.Tier != Root {
		return fmt.Errorf("%w: it is the %s %q", errServer, p.Tier, p.Name)
	}
	return nil
}

// checker determines the rights of verified peers. Its methods are safe for concurrent use.
type checker interface {
	peer(tls.ConnectionState) (Peer, error)
	recheck(tls.ConnectionState) error
	own() (Peer, error)
}

// Peer returns what the certificates of the other side prove, after a finished handshake with a
// configuration of s. After an error the connection must be refused, because it was made with
// another configuration.
func (s *Source) Peer(state tls.ConnectionState) (Peer, error) { return s.checker.peer(state) }

// Recheck returns nil if an open connection would still be accepted. An error means that a
// certificate of the peer's chain has expired, its authority was removed from the files, or its
// name is not listed. Recheck may read files, at most once a second, and costs about as much as the
// verification in a handshake.
func (s *Source) Recheck(state tls.ConnectionState) error { return s.checker.recheck(state) }

// Own returns what the certificates of s prove to peers. With a user's own certificates, an error
// means that Names contains none of the names in them. Instances with the same Names then refuse
// connections with s.
func (s *Source) Own() (Peer, error) { return s.checker.own() }

func leafOf(state tls.ConnectionState) (*x509.Certificate, error) {
	if len(state.PeerCertificates) == 0 {
		return nil, errUnverified
	}
	if leaf := state.PeerCertificates[0]; !leaf.IsCA {
		return leaf, nil
	}
	return nil, errAuthority
}

func verify(state tls.ConnectionState, roots *x509.CertPool, now time.Time,
	use x509.ExtKeyUsage) ([][]*x509.Certificate, error) {
	leaf, err := leafOf(state)
	if err != nil {
		return nil, err
	}
	between := x509.NewCertPool()
	for _, cert := range state.PeerCertificates[1:] {
		between.AddCert(cert)
	}
	return leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{use}})
}

// end returns the time when the last of the chains expires. A chain expires when any of its
// certificates expires.
func end(chains [][]*x509.Certificate) (latest time.Time) {
	for _, chain := range chains {
		until := never()
		for _, cert := range chain {
			if cert.NotAfter.Before(until) {
				until = cert.NotAfter
			}
		}
		if until.After(latest) {
			latest = until
		}
	}
	return latest
}
