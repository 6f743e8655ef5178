package credentials

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"
)

const (
	backdate   = 24 * time.Hour     // before the time of making: for peers whose clocks are behind
	lifetime   = 7 * 24 * time.Hour // from the time of making
	renewAfter = 24 * time.Hour     // so that a peer whose clock is ahead by six days still accepts
	stepBack   = time.Hour          // of our own clock, after which a certificate is made anew
)

var (
	errUnverified = errors.New("credentials: the peer's certificate was not verified")
	errAuthority  = errors.New("credentials: the peer presents the certificate of an authority as its own")
)

// node makes the certificates of this process. All are for one key, which never leaves it.
type node struct {
	authority     *authority
	cluster, name string
	key           ed25519.PrivateKey
	now           func() time.Time

	mu      sync.Mutex // guards what follows; held while signing, never across I/O
	current *tls.Certificate
	made    time.Time
}

// certificate returns one that is good for days, made now if need be.
func (n *node) certificate() (*tls.Certificate, error) {
	now := n.now().Round(0) // by the wall clock alone: the monotonic one stops while a machine sleeps
	n.mu.Lock()
	defer n.mu.Unlock()
	if age := now.Sub(n.made); n.current != nil && age > -stepBack && age < renewAfter {
		return n.current, nil
	}
	made, err := n.sign(now)
	if err != nil {
		return nil, err
	}
	n.current, n.made = made, now
	return made, nil
}

// sign makes a certificate. The chain is the leaf alone: a peer must have the authority already.
func (n *node) sign(now time.Time) (*tls.Certificate, error) {
	public := n.key.Public().(ed25519.PublicKey)
	template := &x509.Certificate{
		SerialNumber:       serial(public, now),
		Subject:            pkix.Name{CommonName: n.name, Organization: []string{n.cluster}}, // for people, see who
		NotBefore:          now.Add(-backdate),
		NotAfter:           now.Add(lifetime),
		KeyUsage:           x509.KeyUsageDigitalSignature,
		ExtKeyUsage:        []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:           []string{serverName(n.cluster)},
		SignatureAlgorithm: x509.PureEd25519,
	}
	der, err := x509.CreateCertificate(nil, template, n.authority.cert, public, n.authority.key)
	if err != nil {
		return nil, fmt.Errorf("credentials: making the certificate of %q in cluster %q: %w", n.name, n.cluster, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("credentials: making the certificate of %q in cluster %q: %w", n.name, n.cluster, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: n.key, Leaf: leaf}, nil
}

// serial differs between nodes and between the certificates of a node, without a random source that could fail in a handshake.
func serial(public ed25519.PublicKey, now time.Time) *big.Int {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("serial\x00"), public...), uint64(now.UnixNano())))
	sum[0] = sum[0]&0x7f | 0x40 // positive, and never zero
	return new(big.Int).SetBytes(sum[:16])
}

// verify runs on both sides after crypto/tls has found a chain to an authority that is trusted. crypto/tls compares the server's
// name only; a client of the cluster carries it too. The first check can fail only if a line elsewhere in this package is wrong.
func (n *node) verify(state tls.ConnectionState) error {
	if len(state.VerifiedChains) == 0 || len(state.PeerCertificates) == 0 {
		return errUnverified
	}
	leaf := state.PeerCertificates[0]
	if leaf.IsCA {
		return errAuthority
	}
	return leaf.VerifyHostname(serverName(n.cluster))
}
