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

// SecretConfig is the input of [FromSecret]. It is copied, and its secrets are not kept.
type SecretConfig struct {
	Secret string // root secret or derived secret; white space around it is removed
	// Old contains further root secrets that are accepted while the secret is being replaced.
	Old []string
	// Cluster is the label of the cluster. It is required. The same secret results in other
	// credentials for another cluster.
	Cluster string
	Now     func() time.Time // wall clock, safe for concurrent use; nil means time.Now
	Random  func([]byte)     // fills a slice with random bytes; called once; nil means crypto/rand
}

// Format prints c without its secrets for every verb.
func (c SecretConfig) Format(out fmt.State, _ rune) {
	fmt.Fprintf(out, "secret of cluster %q (%d old)", c.Cluster, len(c.Old))
}

// LogValue implements slog.LogValuer. The value contains no secrets.
func (c SecretConfig) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// validate never quotes a secret.
func (c SecretConfig) validate() error {
	var errs []error
	if !IsDerived(c.Secret) {
		if err := judge(c.Secret); err != nil {
			errs = append(errs, fmt.Errorf("Config.Secret: %w", err))
		}
	} else if len(c.Old) > 0 {
		errs = append(errs, errors.New("Config.OldSecrets: is set together with a derived Secret: leave it out, "+
			"since the derived Secret is accepted as long as the instances have its root secret in Secret or OldSecrets"))
	}
	for i, old := range c.Old {
		if old == "" {
			errs = append(errs, fmt.Errorf("Config.OldSecrets[%d]: is empty: leave it out", i))
		} else if IsDerived(old) {
			errs = append(errs, fmt.Errorf("Config.OldSecrets[%d]: %w", i, errDerived))
		} else if err := judge(old); err != nil {
			errs = append(errs, fmt.Errorf("Config.OldSecrets[%d]: %w", i, err))
		}
	}
	if c.Cluster == "" {
		errs = append(errs, errors.New("Config.Cluster: is empty: give the cluster a label"))
	}
	return errors.Join(errs...)
}

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
		// never fails: on an error the process ends
		c.Random = func(b []byte) { _, _ = rand.Read(b) }
	}
	return c
}

// FromSecret derives the cluster's authorities, and makes this node's key and first certificate.
// With a derived secret, the credentials can only dial. The error names the fields to correct, and
// says how to make a good secret.
func FromSecret(cfg SecretConfig) (*Source, error) {
	cfg = cfg.trimmed()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if IsDerived(cfg.Secret) {
		return fromDerived(cfg)
	}
	n, t := &node{}, &trust{cluster: cfg.Cluster, pool: x509.NewCertPool(), now: cfg.Now,
		self: Peer{Tier: Root, NotAfter: never()}}
	key := cfg.leafKey()
	about := "TLS from Config.Secret, authority "
	for i, secret := range append([]string{cfg.Secret}, cfg.Old...) {
		a, err := newAuthority(secret, cfg.Cluster)
		if err != nil {
			return nil, err
		}
		t.pool.AddCert(a.cert)
		t.authorities = append(t.authorities, a.public())
		n.issuers = append(n.issuers, &issuer{label: a.id(), cert: a.cert, by: a.key, cluster: cfg.Cluster, key: key,
			now: cfg.Now, authority: a.public()})
		if i > 0 {
			about += ", old "
		}
		about += a.id()
	}
	return newSource(n, t, anyAuthority, about)
}

// fromDerived makes credentials of the member or guest tier, which trust only the authority of
// their root secret.
func fromDerived(cfg SecretConfig) (*Source, error) {
	d, err := parseDerived(cfg.Secret, cfg.Cluster)
	if err != nil {
		return nil, fmt.Errorf("Config.Secret: %w", err)
	}
	self, err := d.peer(cfg.Now())
	if err != nil {
		return nil, fmt.Errorf("Config.Secret: %w", err)
	}
	t := &trust{cluster: cfg.Cluster, pool: x509.NewCertPool(), now: cfg.Now, self: self,
		authorities: []ed25519.PublicKey{d.authority.public()}}
	t.pool.AddCert(d.authority.cert)
	n := &node{issuers: []*issuer{{
		cert: d.cert, by: d.key, between: [][]byte{d.cert.Raw}, cluster: cfg.Cluster, key: cfg.leafKey(), now: cfg.Now,
		authority: d.authority.public(),
	}}}
	return newSource(n, t, d.authority.id(), fmt.Sprintf("TLS from a derived Config.Secret (%s, for %q), "+
		"authority %s", t.self.Tier, t.self.Name, d.authority.id()))
}

func (c SecretConfig) leafKey() ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	c.Random(seed)
	return ed25519.NewKeyFromSeed(seed)
}

var errServes = errors.New("credentials: this instance has a derived secret and accepts no connections; " +
	"only those with the root secret do")

var (
	errForeign = errors.New("was derived from another secret than those of this cluster, or for another cluster than " +
		"this one")
	errNoAuthority = errors.New("credentials: without a secret there are no derived secrets")
)

// Derived returns what a derived secret proves to the instances that have the same secret as s. It
// makes no connection, and compares the authority before anything that costs more, so a caller may
// ask about every secret that a stranger shows. An error means that no instance of the cluster
// accepts the secret, or that s was not made from a secret. The error never contains the secret.
func (s *Source) Derived(secret string) (Peer, error) {
	t, ok := s.checker.(*trust)
	if !ok {
		return Peer{}, errNoAuthority
	}
	payload, err := unpackDerived(strings.TrimSpace(secret))
	if err != nil {
		return Peer{}, err
	}
	if !t.trusts(payload[:ed25519.PublicKeySize]) {
		return Peer{}, fmt.Errorf("%w, %q", errForeign, t.cluster)
	}
	d, err := parseDerived(strings.TrimSpace(secret), t.cluster)
	if err != nil {
		return Peer{}, err
	}
	return d.peer(t.now())
}

// newSource makes the first certificate. The label identifies the authority that dialers request.
// This package verifies dialed connections itself: crypto/tls would compare one server name, but
// the name depends on the authority, and during a rotation there are several.
func newSource(n *node, t *trust, label, about string) (*Source, error) {
	if _, err := n.issuers[0].certificate(); err != nil {
		return nil, err
	}
	client := harden(&tls.Config{
		Time:                 t.now,
		GetCertificate:       n.dialed,
		GetClientCertificate: n.dials,
		RootCAs:              t.pool,
		ClientCAs:            t.pool,
		ServerName:           serverName(label, t.authorities[0], t.cluster),
		InsecureSkipVerify:   true,
		VerifyConnection:     t.dials,
	})
	server := client.Clone()
	server.InsecureSkipVerify = false
	server.VerifyConnection = t.accepts
	if t.self.Tier != Root {
		server.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return nil, errServes }
	}
	return &Source{server: server.Clone, client: client.Clone, checker: t, about: about}, nil
}
