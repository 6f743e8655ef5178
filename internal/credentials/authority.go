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
	"time"
)

const (
	// These separate what is derived here from everything else that somebody may derive from the same secret. They are part of the
	// protocol: nodes with other values refuse each other.
	salt         = "mortise credentials v1"
	authorityUse = "ed25519 authority key\x00" // followed by the cluster's label

	// domain ends the DNS names of our certificates. It is reserved for private use and never looked up.
	domain = ".mortise.internal"
)

// authority is what one secret makes of one cluster: the key that signs the certificates of its nodes. Every node has it.
type authority struct {
	key  ed25519.PrivateKey
	cert *x509.Certificate
}

// newAuthority is a function of its arguments alone. Peers never exchange the certificate of an authority: only its key and its name
// have to be the same everywhere, and the key identifier is set here since what Go makes of a key has changed between its versions.
func newAuthority(secret, cluster string) (*authority, error) {
	seed, err := hkdf.Key(sha256.New, []byte(secret), []byte(salt), authorityUse+cluster, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("credentials: deriving the authority of cluster %q: %w", cluster, err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "mortise authority " + hex.EncodeToString(id[:8])},
		SubjectKeyId: id[:20],
		// For all times that a clock can show: a machine that lost its time shall be told so about its own certificate.
		NotBefore:                   time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:                    time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{serverName(cluster)},
		SignatureAlgorithm:          x509.PureEd25519,
	}
	der, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		return nil, fmt.Errorf("credentials: making the authority of cluster %q: %w", cluster, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("credentials: making the authority of cluster %q: %w", cluster, err)
	}
	return &authority{key: key, cert: cert}, nil
}

// id names the authority to people. It is made from the public key.
func (a *authority) id() string { return hex.EncodeToString(a.cert.SubjectKeyId[:8]) }

// serverName is the one DNS name in the certificates of a cluster. It is a hash since a label may be anything, and since it crosses the
// network in the clear.
func serverName(cluster string) string {
	sum := sha256.Sum256([]byte("mortise server name v1\x00" + cluster))
	return hex.EncodeToString(sum[:16]) + domain
}
