package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"time"
)

// peer returns what a finished handshake proves. It computes the verified chains of dialed
// connections.
func (n *names) peer(state tls.ConnectionState, roots *x509.CertPool, now time.Time) (Peer, error) {
	chains := state.VerifiedChains
	if len(chains) == 0 {
		var err error
		if chains, err = verify(state, roots, now, x509.ExtKeyUsageAny); err != nil {
			return Peer{}, err
		}
	}
	leaf, err := leafOf(state)
	if err != nil {
		return Peer{}, err
	}
	p, err := n.find(leaf)
	if err != nil {
		return Peer{}, err
	}
	p.NotAfter = end(chains)
	return p, nil
}

func (n *names) accepts(own func(tls.ConnectionState) error) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.VerifiedChains) == 0 {
			return errUnverified
		}
		leaf, err := leafOf(state)
		if err != nil {
			return err
		}
		if _, err := n.find(leaf); err != nil {
			return err
		}
		if own != nil {
			return own(state)
		}
		return nil
	}
}

// dials makes this package verify dialed connections, because crypto/tls would compare only a
// single ServerName, and no URI. The new VerifyConnection checks the chain, the time and the key
// usage like crypto/tls, and calls the user's own functions.
func (n *names) dials(config *tls.Config, now func() time.Time) {
	raw, own, roots := config.VerifyPeerCertificate, config.VerifyConnection, config.RootCAs
	config.InsecureSkipVerify, config.VerifyPeerCertificate = true, nil
	config.VerifyConnection = func(state tls.ConnectionState) (err error) {
		if state.VerifiedChains, err = verify(state, roots, now(), x509.ExtKeyUsageServerAuth); err != nil {
			return err
		}
		p, err := n.find(state.PeerCertificates[0])
		if err == nil {
			err = mayServe(p)
		}
		if err != nil {
			return err
		}
		if raw != nil {
			var list [][]byte
			for _, cert := range state.PeerCertificates {
				list = append(list, cert.Raw)
			}
			if err := raw(list, state.VerifiedChains); err != nil {
				return err
			}
		}
		if own != nil {
			return own(state)
		}
		return nil
	}
}
