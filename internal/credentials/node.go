package credentials

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"
	"strings"
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
	issuers []*issuer // the first signs unless a dialer names another one
}

// issuer makes certificates that one authority, or one derived secret, signs.
type issuer struct {
	label   string            // in the server name of a dialer that trusts this one alone
	cert    *x509.Certificate // signs
	by      ed25519.PrivateKey
	between [][]byte // certificates between the leaf and the authority
	cluster string
	key     ed25519.PrivateKey // of the leaf
	now     func() time.Time

	mu      sync.Mutex // guards what follows; held while signing, never across I/O
	current *tls.Certificate
	made    time.Time
}

// certificate returns one that is good for days, made now if need be.
func (i *issuer) certificate() (*tls.Certificate, error) {
	now := i.now().Round(0) // by the wall clock alone: the monotonic one stops while a machine sleeps
	i.mu.Lock()
	defer i.mu.Unlock()
	if age := now.Sub(i.made); i.current != nil && age > -stepBack && age < renewAfter {
		return i.current, nil
	}
	made, err := i.sign(now)
	if err != nil {
		return nil, err
	}
	i.current, i.made = made, now
	return made, nil
}

// dialed chooses for a dialer. The holder of a derived secret trusts the authority of its own root
// secret alone and names it, so it is answered as long as that secret stands in Secret or
// OldSecrets.
func (n *node) dialed(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if hello != nil {
		label, _, _ := strings.Cut(hello.ServerName, ".")
		for _, i := range n.issuers {
			if i.label == label {
				return i.certificate()
			}
		}
	}
	return n.issuers[0].certificate()
}

// dials chooses for a server: only the secret in use signs what this side dials with.
func (n *node) dials(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return n.issuers[0].certificate()
}

// sign makes a certificate. It names nothing but a hash of the cluster's label: every stranger that
// reaches the port sees it. The chain holds no authority: a peer must have that already.
func (i *issuer) sign(now time.Time) (*tls.Certificate, error) {
	public := i.key.Public().(ed25519.PublicKey)
	template := &x509.Certificate{
		SerialNumber:       serial(public, now),
		NotBefore:          now.Add(-backdate),
		NotAfter:           now.Add(lifetime),
		KeyUsage:           x509.KeyUsageDigitalSignature,
		ExtKeyUsage:        []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:           []string{leafName(i.cluster)},
		SignatureAlgorithm: x509.PureEd25519,
	}
	if i.cert.NotAfter.Before(template.NotAfter) {
		template.NotAfter = i.cert.NotAfter
	}
	der, err := x509.CreateCertificate(nil, template, i.cert, public, i.by)
	if err != nil {
		return nil, fmt.Errorf("credentials: making a certificate of cluster %q: %w", i.cluster, err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("credentials: making a certificate of cluster %q: %w", i.cluster, err)
	}
	return &tls.Certificate{Certificate: append([][]byte{der}, i.between...), PrivateKey: i.key, Leaf: leaf}, nil
}

// serial differs between nodes and between the certificates of a node, without a random source that
// could fail in a handshake.
func serial(public ed25519.PublicKey, now time.Time) *big.Int {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("serial\x00"), public...), uint64(now.UnixNano())))
	sum[0] = sum[0]&0x7f | 0x40 // positive, and never zero
	return new(big.Int).SetBytes(sum[:16])
}
