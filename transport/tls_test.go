package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// static is a Security with the same configuration for both sides.
type static struct{ config *tls.Config }

func (s static) ServerTLS() *tls.Config   { return s.config.Clone() }
func (s static) ClientTLS() *tls.Config   { return s.config.Clone() }
func (s static) Explain(err error) string { return err.Error() }

// authority makes TLS configurations that accept each other.
type authority struct {
	t    testing.TB
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(1000 * time.Hour), IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, cert: cert, pool: x509.NewCertPool()}
	a.pool.AddCert(cert)
	return a
}

func (a *authority) use(c *Config) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"a", "b", "c", "d"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	c.TLS = static{&tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: a.pool, ClientCAs: a.pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}}
}

func TestTLS(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ours, theirs := newAuthority(t), newAuthority(t)
		a, b := w.node("a", 1, ours.use), w.node("b", 2, ours.use)
		c, d := w.node("c", 3, theirs.use), w.node("d", 4)
		a.send(b, "x")
		b.wantCommands("mutual TLS", a, "x")
		if _, _, err := b.Ask(t.Context(), "a:1", id(1), nil); err != nil {
			t.Error(err)
		}
		_ = a.Gossip().WriteTo([]byte("p"), "b:1")
		if err := a.SendSnapshot(t.Context(), b.peer(), snapshotMessage(a, b, 1<<20)); err != nil {
			t.Error(err)
		}
		synctest.Wait() // the packet and the snapshot use different connections
		if got := packetsOf(b); len(got) != 1 {
			t.Error(got)
		}
		ask := func(why string, from, to *node, want error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if _, _, err := from.Ask(ctx, to.identity.Addr, nodeid.ID{}, nil); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", why, err, want)
			}
		}
		ask("their certificate", a, c, ErrForeign)
		ask("our certificate", c, a, ErrForeign)
		// The error says which side has no TLS. It does not prove that the other side belongs to
		// another cluster.
		ask("TLS to plain text", a, d, ErrSilent)
		ask("TLS to plain text", a, d, ErrPlain)
		ask("plain text to TLS", d, a, ErrSilent)
		ask("plain text to TLS", d, a, ErrSecured)
		ca := static{a.config.TLS.ClientTLS()}
		ca.config.RootCAs = theirs.pool
		e := w.node("e", 5, func(c *Config) { c.TLS = ca })
		ask("our certificate, but we refuse theirs", e, b, ErrForeign)
		f := w.node("f", 6, func(c *Config) {
			c.TLS = static{&tls.Config{RootCAs: ours.pool, MinVersion: tls.VersionTLS13}}
		})
		ask("no certificate of our own", f, a, ErrForeign)
		link := func(why string, from *node, want error) {
			t.Helper()
			from.anew()
			_ = from.Send(a.peer(), Frame{Commands: []byte("evil")})
			synctest.Wait()
			time.Sleep(linger)
			if got := from.seen(); len(got) != 1 || !errors.Is(got[0].down, want) {
				t.Errorf("%s: %+v, want %v", why, got, want)
			}
		}
		link("a link without a certificate", f, ErrForeign)
		link("a link with their certificate", c, ErrForeign)
		link("a plain link to TLS", d, ErrSilent)
		a.seen()
		_ = d.Send(a.peer(), Frame{Commands: []byte("evil")})
		_ = c.Send(a.peer(), Frame{Commands: []byte("evil")})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if got := a.seen(); len(got) != 0 {
			t.Errorf("got %+v", got)
		}
	})
}

// An instance whose certificate has expired counts as silent. The error gives the reason, and
// existing links are not affected.
func TestExpiredCertificateIsNoProof(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ours := newAuthority(t)
		a, b := w.node("a", 1, ours.use), w.node("b", 2, ours.use)
		a.send(b, "x")
		b.wantCommands("fresh", a, "x")
		time.Sleep(25 * time.Hour)
		c := w.node("c", 3, ours.use)
		a.send(b, "y")
		b.wantCommands("a day later", a, "y")
		for _, pair := range [][2]*node{{a, b}, {a, c}, {c, a}} {
			_, _, err := pair[0].Ask(t.Context(), pair[1].identity.Addr, nodeid.ID{}, nil)
			if !errors.Is(err, ErrSilent) || errors.Is(err, ErrForeign) || !strings.Contains(err.Error(), "expired") {
				t.Errorf("%d asks %d: %v", pair[0].identity.Instance, pair[1].identity.Instance, err)
			}
		}
	})
}
