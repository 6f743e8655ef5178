package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// company is the certificate authority of a company, which issues certificates to all its services.
type company struct {
	t    *testing.T
	key  ed25519.PrivateKey
	cert *x509.Certificate
}

func newCompany(t *testing.T) *company {
	c := &company{t: t}
	_, c.key, _ = ed25519.GenerateKey(rand.Reader)
	c.cert = c.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign},
		c.key).Leaf
	return c
}

func (c *company) sign(template *x509.Certificate, key ed25519.PrivateKey) tls.Certificate {
	c.t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Unix(0, 0),
		time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	parent := c.cert
	if parent == nil {
		parent, template.Subject, template.ExtKeyUsage = template, pkix.Name{CommonName: "company"}, nil
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), c.key)
	if err != nil {
		c.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		c.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// named returns a function that changes a Config. It sets a certificate with the given name, and
// sets TLSPeers to peers.
func (c *company) named(name string, peers ...string) func(*mortise.Config) {
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	pair := c.sign(&x509.Certificate{DNSNames: []string{name}}, key)
	pool := x509.NewCertPool()
	pool.AddCert(c.cert)
	return func(config *mortise.Config) {
		config.Insecure, config.TLSPeers = false, peers
		config.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: pool, ClientCAs: pool}
	}
}

func (c *company) files(name string, peers ...string) func(*mortise.Config) {
	c.t.Helper()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	pair := c.sign(&x509.Certificate{DNSNames: []string{name}}, key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	dir := c.t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			c.t.Fatal(err)
		}
		return path
	}
	files := mortise.TLSFiles{
		Cert: write("cert.pem", "CERTIFICATE", pair.Certificate[0]),
		Key:  write("key.pem", "PRIVATE KEY", der),
		CA:   write("ca.pem", "CERTIFICATE", c.cert.Raw),
	}
	return func(config *mortise.Config) {
		config.Insecure, config.TLSPeers, config.TLSFiles = false, peers, files
	}
}

// TestOtherServicesOfTheAuthorityStayOutside checks that a certificate for another service of the
// same authority is refused in both directions.
func TestOtherServicesOfTheAuthorityStayOutside(t *testing.T) {
	slow.UnderRace(t)
	ca := newCompany(t)
	for _, name := range []string{"billing.internal", "laptop.example"} {
		bubble(t, func(t *testing.T) {
			var ours lines
			f := startFleet(t, 3, ca.named("orders.internal", "orders.internal"), func(c *mortise.Config) {
				c.Logger = slog.New(slog.NewTextHandler(&ours, nil))
			})
			mine := f.lock(0, "k")
			stranger := f.config(3, 3)
			// This stranger would accept our instances.
			ca.named(name, name, "orders.internal")(&stranger)
			f.start(3, stranger)
			time.Sleep(15 * time.Second) // longer than a lease
			if err := mine.Err(); err != nil {
				t.Errorf("a stranger cost a lock: %v", err)
			}
			if s := f.nodes[3].Status(); s.Group != "" || len(f.nodes[3].Cluster().Members()) > 1 {
				t.Errorf("%s has come in:\n%v", name, s)
			}
			if n := len(f.nodes[0].Cluster().Members()); n != 3 {
				t.Errorf("there are %d members, want 3", n)
			}
			if len(ours.matching("carries no listed name")) == 0 {
				t.Errorf("the refusal is not told:\n%s", ours.text.String())
			}
			unlock(t, mine)
		})
	}
	var config mortise.Config
	ca.named("billing.internal", "orders.internal")(&config)
	if _, err := mortise.Start(t.Context(), config); err == nil ||
		!strings.Contains(err.Error(), "lacks the name of this instance's own certificate") {
		t.Errorf("an instance that all others would refuse starts: %v", err)
	}
}
