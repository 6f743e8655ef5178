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
	// A certificate is valid from backdate before its creation, for peers whose clocks are behind,
	// until lifetime after its creation. It is replaced at the age renewAfter, when it is still
	// valid for six days, for peers whose clocks are ahead.
	backdate   = 24 * time.Hour
	lifetime   = 7 * 24 * time.Hour
	renewAfter = 24 * time.Hour

	stepBack = time.Hour // if the clock is set back by more, a new certificate is made
)

var (
	errUnverified = errors.New("credentials: the peer's certificate was not verified")
	errAuthority  = errors.New("credentials: the peer presents the certificate of an authority as its own")
)

// node makes the certificates of this process for one key, which is never stored or sent.
type node struct {
	issuers []*issuer // the first one signs, unless a dialer requests another
}

// issuer makes certificates, and signs them with the key of one authority or one derived secret.
type issuer struct {
	label   string // label in the server name of a dialer that trusts only this authority
	cert    *x509.Certificate
	by      ed25519.PrivateKey
	between [][]byte // certificates between the leaf and the authority
	cluster string
	key     ed25519.PrivateKey
	now     func() time.Time
	// authority is the public key of the authority at the end of the chain.
	authority ed25519.PublicKey

	mu      sync.Mutex // guards the fields below; held while signing, never during I/O
	current *tls.Certificate
	made    time.Time
}

func (i *issuer) certificate() (*tls.Certificate, error) {
	now := i.now().Round(0) // wall clock, because the monotonic clock stops during sleep
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

// dialed chooses the certificate to present to a dialer. The label in the dialer's server name
// selects the issuer. If no issuer has that label, dialed uses the first issuer.
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

// dials chooses the certificate to present to a server. That certificate is never signed with an
// old secret.
func (n *node) dials(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	return n.issuers[0].certificate()
}

// sign makes a certificate. Every stranger that reaches the port receives it, so it names
// the cluster as zone does. The chain omits the authority, which the peer must have already.
func (i *issuer) sign(now time.Time) (*tls.Certificate, error) {
	public := i.key.Public().(ed25519.PublicKey)
	template := &x509.Certificate{
		SerialNumber:       serial(public, now),
		NotBefore:          now.Add(-backdate),
		NotAfter:           now.Add(lifetime),
		KeyUsage:           x509.KeyUsageDigitalSignature,
		ExtKeyUsage:        []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:           []string{leafName(i.authority, i.cluster)},
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

// serial returns a unique serial number without a random source that could fail.
func serial(public ed25519.PublicKey, now time.Time) *big.Int {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("serial\x00"), public...), uint64(now.UnixNano())))
	sum[0] = sum[0]&0x7f | 0x40 // never zero, and always 16 bytes long
	return new(big.Int).SetBytes(sum[:16])
}
