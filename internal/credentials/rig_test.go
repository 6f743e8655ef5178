package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/memnet"
)

const (
	// generated secrets, which are not stretched
	secretA = "msk1_a2bfff9c6250151c2086c5b899140b6f977fb1d9f63fc3653490576867a23bdeaa83737c"
	secretB = "msk1_8b06eff9d884aff3122f597b40e3466123db53891ce2e1a68c79c6caa5f890b828caa9a0"
	secretC = "msk1_fce38e2945acdb01a2ca7c0c20c34be2f27fa601311077694fe6df60ff5e074f18f593d1"
)

var noon = time.Date(2030, 5, 17, 12, 0, 0, 0, time.UTC)

func at(when time.Time) func() time.Time { return func() time.Time { return when } }

func source(t testing.TB, cfg SecretConfig) *Source {
	t.Helper()
	if cfg.Secret == "" {
		cfg.Secret = secretA
	}
	if cfg.Cluster == "" {
		cfg.Cluster = "orders"
	}
	if cfg.Now == nil {
		cfg.Now = at(noon)
	}
	s, err := FromSecret(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// meet makes a connection and exchanges a byte in each direction. It returns the first error at
// each end.
func meet(t testing.TB, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	serverErr, clientErr, _ = handshake(t, server, client)
	return serverErr, clientErr
}

// pipe returns the ends of a connection that buffers written data.
func pipe(t testing.TB) (server, client net.Conn) {
	t.Helper()
	network := memnet.New()
	listener, err := network.Listen("server:1")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if client, err = network.Dialer("client")(t.Context(), "server:1"); err != nil {
		t.Fatal(err)
	}
	if server, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func handshake(t testing.TB, server, client *tls.Config) (serverErr, clientErr error, seen tls.ConnectionState) {
	t.Helper()
	a, b := pipe(t)
	done := make(chan error, 1)
	go func() {
		defer a.Close()
		conn := tls.Server(a, server)
		_ = a.SetDeadline(time.Now().Add(10 * time.Second))
		_, err := conn.Write([]byte{1}) // performs the handshake
		if err == nil {
			_, err = io.ReadFull(conn, make([]byte, 1))
		}
		done <- err
	}()
	if client.ServerName == "" {
		client = client.Clone()
		client.ServerName = "node.test"
	}
	conn := tls.Client(b, client)
	_ = b.SetDeadline(time.Now().Add(10 * time.Second))
	_, clientErr = io.ReadFull(conn, make([]byte, 1))
	if clientErr == nil {
		_, clientErr = conn.Write([]byte{2})
	}
	seen = conn.ConnectionState()
	if clientErr != nil {
		b.Close()
	}
	serverErr = <-done
	b.Close()
	return serverErr, clientErr, seen
}

func wantTalk(t testing.TB, why string, server, client *tls.Config) {
	t.Helper()
	if s, c := meet(t, server, client); s != nil || c != nil {
		t.Errorf("%s: the server says %v, the client %v", why, s, c)
	}
}

// wantRefused checks that both ends fail, and that their explanations contain the given words.
func wantRefused(t testing.TB, why string, server, client *tls.Config, serverSays, clientSays string) {
	t.Helper()
	s, c := meet(t, server, client)
	if s == nil || c == nil {
		t.Errorf("%s: was not refused: the server got %v, the client %v", why, s, c)
		return
	}
	if got := Explain(s); !strings.Contains(got, serverSays) {
		t.Errorf("%s: the server says %q, want %q; from %v", why, got, serverSays, s)
	}
	if got := Explain(c); !strings.Contains(got, clientSays) {
		t.Errorf("%s: the client says %q, want %q; from %v", why, got, clientSays, c)
	}
}

type signer struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
}

func newSigner(t testing.TB, name string) *signer {
	t.Helper()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: noon.AddDate(-1, 0, 0),
		NotAfter: noon.AddDate(1, 0, 0),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, _ := x509.ParseCertificate(der)
	return &signer{cert: cert, key: key}
}

func (s *signer) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.cert)
	return pool
}

// pair returns a certificate for node.test, modified by the functions. A nil signer uses the
// certificate's own key to sign.
func (s *signer) pair(t testing.TB, change ...func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	_, key, _ := ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "node"}, NotBefore: noon.Add(-time.Hour),
		NotAfter: noon.Add(time.Hour),
		DNSNames: []string{"node.test"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
			x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(template)
	}
	parent, by := template, key
	if s != nil {
		parent, by = s.cert, s.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	leaf, _ := x509.ParseCertificate(der)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// presenting returns a configuration that always presents pair, and does not check the peer.
func presenting(pair tls.Certificate) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, ClientAuth: tls.RequestClientCert, Time: at(noon),
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}
}
