package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// minSecret is the least number of bytes of a secret: 128 bits, if they are random.
const minSecret = 16

// SecretConfig is what [FromSecret] makes credentials from. It is copied, and its secrets are not kept.
type SecretConfig struct {
	Secret  string           // shared by all instances, at least 16 bytes; white space around it, as files have it, is cut off
	Old     []string         // further secrets whose owners are let in while the secret is replaced: Config.OldSecrets
	Cluster string           // the cluster's label, required: the same secret in another cluster gives other credentials
	Name    string           // this node's name, shown to peers in errors; it proves nothing
	Now     func() time.Time // wall clock; nil: time.Now. Must be safe for concurrent use
	Random  func([]byte)     // fills its argument with random bytes, called once; nil: crypto/rand
}

// Format prints c without its secrets, under every verb.
func (c SecretConfig) Format(out fmt.State, _ rune) {
	fmt.Fprintf(out, "secret of cluster %q for %q (%d old)", c.Cluster, c.Name, len(c.Old))
}

// LogValue is what slog prints.
func (c SecretConfig) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// validate reports every mistake at once, by the names that the user knows the fields by. It never quotes a secret.
func (c SecretConfig) validate() error {
	var errs []error
	if n := len(c.Secret); n < minSecret {
		errs = append(errs, fmt.Errorf("Config.Secret: %d bytes are too few, at least %d are needed: make a random one with `openssl rand -hex 32`, and give the same to every instance", n, minSecret))
	}
	for i, old := range c.Old {
		if n := len(old); n == 0 {
			errs = append(errs, fmt.Errorf("Config.OldSecrets[%d]: is empty: leave it out", i))
		} else if n < minSecret {
			errs = append(errs, fmt.Errorf("Config.OldSecrets[%d]: %d bytes are too few, at least %d are needed: no instance can have used it as Config.Secret", i, n, minSecret))
		}
	}
	if c.Cluster == "" {
		errs = append(errs, errors.New("Config.Cluster: is empty: give the cluster a label"))
	}
	return errors.Join(errs...)
}

// trimmed returns a copy without the white space around the secrets, and with every optional field set.
func (c SecretConfig) trimmed() SecretConfig {
	c.Secret = strings.TrimSpace(c.Secret)
	old := make([]string, len(c.Old))
	for i, s := range c.Old {
		old[i] = strings.TrimSpace(s)
	}
	c.Old = old
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = func(b []byte) { _, _ = rand.Read(b) } // never fails: it ends the process rather than return bad bytes
	}
	return c
}

// FromSecret derives the cluster's authorities and makes this node's key and its first certificate. The error names the fields that are
// wrong and how to make a good secret.
func FromSecret(cfg SecretConfig) (*Source, error) {
	cfg = cfg.trimmed()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	own, err := newAuthority(cfg.Secret, cfg.Cluster)
	if err != nil {
		return nil, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(own.cert)
	about := fmt.Sprintf("TLS from Config.Secret, authority %s", own.id())
	for _, secret := range cfg.Old {
		old, err := newAuthority(secret, cfg.Cluster)
		if err != nil {
			return nil, err
		}
		trusted.AddCert(old.cert)
		about += ", old " + old.id()
	}
	seed := make([]byte, ed25519.SeedSize)
	cfg.Random(seed)
	n := &node{
		authority: own, cluster: cfg.Cluster, name: cfg.Name,
		key: ed25519.NewKeyFromSeed(seed), now: cfg.Now,
	}
	if _, err := n.certificate(); err != nil {
		return nil, err // a name that no certificate can carry
	}
	template := harden(&tls.Config{
		Time:                 cfg.Now,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return n.certificate() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return n.certificate() },
		RootCAs:              trusted,
		ClientCAs:            trusted,
		ServerName:           serverName(cfg.Cluster),
		VerifyConnection:     n.verify,
	})
	return &Source{server: template.Clone, client: template.Clone, about: about}, nil
}
