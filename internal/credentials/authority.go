package credentials

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"time"
)

const (
	// These strings are part of the protocol: nodes with other values refuse each other.
	salt         = "mortise credentials v2"
	authorityUse = "ed25519 authority key\x00" // followed by the label of the cluster

	// suffix of the DNS names in certificates made from a secret; the names are never looked up
	domain = ".mortise.internal"

	// label in the server name of a dialer that trusts several authorities
	anyAuthority = "node"
)

// authority is derived from one root secret for one cluster. Its key signs the certificates of the
// nodes.
type authority struct {
	key  ed25519.PrivateKey // nil if the authority only verifies peers
	cert *x509.Certificate
}

// newAuthority returns the same key and name on all nodes.
func newAuthority(secret, cluster string) (*authority, error) {
	from, err := keying(secret, cluster)
	if err != nil {
		return nil, fmt.Errorf("credentials: stretching the secret of cluster %q: %w", cluster, err)
	}
	seed, err := hkdf.Key(sha256.New, from, []byte(salt), authorityUse+cluster, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("credentials: deriving the authority of cluster %q: %w", cluster, err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	cert, err := authorityCert(key.Public().(ed25519.PublicKey), key, cluster)
	if err != nil {
		return nil, err
	}
	return &authority{key: key, cert: cert}, nil
}

// authorityCert makes the certificate of an authority. Any key may sign it, because only the key,
// the name and the constraints of a trust anchor matter. It sets the key identifier, because Go's
// default has changed.
func authorityCert(public ed25519.PublicKey, signer ed25519.PrivateKey, cluster string) (*x509.Certificate, error) {
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "mortise authority " + hex.EncodeToString(id[:8])},
		SubjectKeyId: id[:20],
		NotBefore:    always(), NotAfter: never(),
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLen:                  1, // for one derived secret between the authority and a leaf
		KeyUsage:                    x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{zone(public, cluster)},
		SignatureAlgorithm:          x509.PureEd25519,
	}
	der, err := x509.CreateCertificate(nil, template, template, public, signer)
	if err != nil {
		return nil, fmt.Errorf("credentials: making the authority of cluster %q: %w", cluster, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("credentials: making the authority of cluster %q: %w", cluster, err)
	}
	return cert, nil
}

// The results of always() and never() limit the validity of an authority. No clock shows a time
// before the first or after the second. So the authority itself is valid at any time, and a wrong
// clock causes an error about the leaf certificate.
func always() time.Time { return time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC) }

func never() time.Time { return time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC) }

func (a *authority) public() ed25519.PublicKey { return a.cert.PublicKey.(ed25519.PublicKey) }

func (a *authority) id() string { return hex.EncodeToString(a.cert.SubjectKeyId[:8]) }

// zone returns the DNS name of a cluster. Every stranger that reaches the port sees the name, so it
// is a hash of the cluster's label and of the authority's public key, which no certificate on the
// network contains. Without the key, a stranger cannot try out words as labels.
func zone(public ed25519.PublicKey, cluster string) string {
	sum := sha256.Sum256(slices.Concat([]byte("mortise server name v2\x00"), public, []byte(cluster)))
	return hex.EncodeToString(sum[:16]) + domain
}

// leafName returns the only DNS name in the certificates below an authority. It is a wildcard that
// matches all server names of the zone.
func leafName(public ed25519.PublicKey, cluster string) string { return "*." + zone(public, cluster) }

// serverName returns a server name. The label is the ID of an authority, or anyAuthority.
func serverName(label string, public ed25519.PublicKey, cluster string) string {
	return label + "." + zone(public, cluster)
}
