package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

// A derived secret consists of the prefix msd1_ and the following data in base64url without
// padding: the public key of the authority (32 bytes), the seed of the derived key (32 bytes), the
// derived certificate (DER) and a checksum (4 bytes).
const (
	maxDerived  = 16 << 10 // characters
	derivedName = "mortise derived "
)

var (
	errDerived = errors.New("is a derived secret: only a root secret can derive others or be in OldSecrets")
	errChain   = errors.New("credentials: the peer's certificate chain is neither of a root secret nor of one " +
		"derived secret")
	errText = errors.New("credentials: the peer's derived secret holds no capability, or one that differs " +
		"from its certificate")
)

// textID identifies the certificate extension that contains the text of a capability. The arc 2.25
// is for UUIDs. The number after it is smaller than every UUID that has a version, so it cannot be
// the UUID of another extension.
func textID() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{2, 25, 1836020324} }

type derived struct {
	authority  *authority
	key        ed25519.PrivateKey
	cert       *x509.Certificate
	capability *capability.Capability
}

// DeriveSecret returns a derived secret for the cluster with the given label. Its holder has
// exactly the rights of the canonical capability text. The derived secret is not stored anywhere.
// It is valid until the end of the capability, provided that the instances have the root secret in
// Secret or OldSecrets. DeriveSecret is safe for concurrent use.
func DeriveSecret(secret, cluster, text string) (string, error) {
	secret = strings.TrimSpace(secret)
	if IsDerived(secret) {
		return "", fmt.Errorf("Config.Secret: %w", errDerived)
	}
	if err := judge(secret); err != nil {
		return "", fmt.Errorf("Config.Secret: %w", err)
	}
	if cluster == "" {
		return "", errors.New("Config.Cluster: is empty: give the cluster a label")
	}
	c, err := capability.Parse(text)
	if err != nil {
		return "", err
	}
	a, err := newAuthority(secret, cluster)
	if err != nil {
		return "", err
	}
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails: on an error the process ends
	der, err := a.derive(ed25519.NewKeyFromSeed(seed), cluster, c)
	if err != nil {
		return "", err
	}
	payload := slices.Concat(a.public(), seed, der)
	return derivedPrefix + base64.RawURLEncoding.EncodeToString(append(payload, checksum(derivedPrefix, payload)...)),
		nil
}

func (a *authority) derive(key ed25519.PrivateKey, cluster string, c *capability.Capability) ([]byte, error) {
	public := key.Public().(ed25519.PublicKey)
	id := sha256.Sum256(public)
	template := &x509.Certificate{
		SerialNumber:                new(big.Int).SetBytes(append([]byte{0x40}, id[:15]...)),
		Subject:                     pkix.Name{CommonName: derivedName + hex.EncodeToString(id[:8])},
		SubjectKeyId:                id[:20],
		NotBefore:                   always(),
		NotAfter:                    endOf(c),
		BasicConstraintsValid:       true,
		IsCA:                        true,
		MaxPathLenZero:              true,
		KeyUsage:                    x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true,
		PermittedDNSDomains:         []string{zone(a.public(), cluster)},
		ExtraExtensions:             []pkix.Extension{{Id: textID(), Value: []byte(c.Text())}},
		SignatureAlgorithm:          x509.PureEd25519,
	}
	der, err := x509.CreateCertificate(nil, template, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("credentials: deriving a secret of cluster %q: %w", cluster, err)
	}
	return der, nil
}

func endOf(c *capability.Capability) time.Time {
	if until := c.Until(); !until.IsZero() {
		return until
	}
	return never()
}

// derivedKeys is the length of the two keys in a derived secret.
const derivedKeys = ed25519.PublicKeySize + ed25519.SeedSize

// unpackDerived returns the data of a derived secret without its checksum. The data begins with the
// public key of the authority, and nothing of it is verified.
func unpackDerived(secret string) (payload []byte, err error) {
	text, ok := strings.CutPrefix(secret, derivedPrefix)
	if !ok || len(text) > maxDerived {
		return nil, errChecksum
	}
	payload, err = base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(payload) < derivedKeys+checksumBytes {
		return nil, errChecksum
	}
	payload, sum := payload[:len(payload)-checksumBytes], payload[len(payload)-checksumBytes:]
	if string(checksum(derivedPrefix, payload)) != string(sum) {
		return nil, errChecksum
	}
	return payload, nil
}

// parseDerived decodes a derived secret. Its errors never contain the secret.
func parseDerived(secret, cluster string) (*derived, error) {
	payload, err := unpackDerived(secret)
	if err != nil {
		return nil, err
	}
	public := ed25519.PublicKey(payload[:ed25519.PublicKeySize])
	d := &derived{key: ed25519.NewKeyFromSeed(payload[ed25519.PublicKeySize:derivedKeys])}
	if d.cert, err = x509.ParseCertificate(payload[derivedKeys:]); err != nil {
		return nil, fmt.Errorf("its certificate cannot be read: %w", err)
	}
	if !slices.Equal(d.cert.PermittedDNSDomains, []string{zone(public, cluster)}) {
		return nil, fmt.Errorf("was derived for another cluster than %q: set Config.Cluster to the label for "+
			"which it was made", cluster)
	}
	anchor, err := authorityCert(public, d.key, cluster)
	if err != nil {
		return nil, err
	}
	d.authority = &authority{cert: anchor}
	if err := d.cert.CheckSignatureFrom(anchor); err != nil {
		return nil, fmt.Errorf("its certificate is not signed by its authority: %w", err)
	}
	if !d.key.Public().(ed25519.PublicKey).Equal(d.cert.PublicKey) {
		return nil, errors.New("its key is not that of its certificate")
	}
	if d.capability, err = textOf(d.cert); err != nil {
		return nil, err
	}
	return d, nil
}

// peer returns what the secret proves at a time.
func (d *derived) peer(now time.Time) (Peer, error) {
	if now.After(d.cert.NotAfter) {
		return Peer{}, fmt.Errorf("this derived secret ended at %s, and it is %s here: derive a new one with "+
			"mortise secret, or set the clock", stamp(d.cert.NotAfter), stamp(now))
	}
	return Peer{Tier: capability.TierOf(d.capability), Capability: d.capability, Name: d.capability.For(),
		NotAfter: d.cert.NotAfter}, nil
}

// textOf returns the capability in a derived certificate. Both must end at the same time.
func textOf(cert *x509.Certificate) (*capability.Capability, error) {
	for _, e := range cert.Extensions {
		if !e.Id.Equal(textID()) {
			continue
		}
		c, err := capability.Parse(string(e.Value))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errText, err)
		}
		if !cert.NotAfter.Equal(endOf(c)) {
			return nil, errText
		}
		return c, nil
	}
	return nil, errText
}
