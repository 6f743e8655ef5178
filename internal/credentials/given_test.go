package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func given(t testing.TB, ca *signer) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{ca.pair(t)}, RootCAs: ca.pool(), ClientCAs: ca.pool(),
		Time: at(noon)}
}

func fromTLS(t testing.TB, config *tls.Config) *Source {
	t.Helper()
	s, err := FromTLS(config, Names{Peers: []string{"node.test"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestUsersOwnCertificates(t *testing.T) {
	ca, foreign := newSigner(t, "ca"), newSigner(t, "foreign")
	config := given(t, ca)
	a, b := fromTLS(t, config), fromTLS(t, given(t, ca))
	config.Certificates, config.RootCAs = nil, nil // without effect: config was cloned
	wantTalk(t, "a dials b", b.ServerTLS(), a.ClientTLS())
	wantTalk(t, "b dials a", a.ServerTLS(), b.ClientTLS())

	stranger := fromTLS(t, given(t, foreign))
	const notTrusted = "not trusted here"
	wantRefused(t, "a foreign authority dials", a.ServerTLS(), stranger.ClientTLS(), "refuses our certificate",
		notTrusted)
	blind := stranger.ClientTLS()
	blind.InsecureSkipVerify, blind.VerifyConnection = true, nil
	// A client of crypto/tls sends no certificate if the server's request does not list the
	// authority that has signed the client's certificate.
	wantRefused(t, "a foreign authority, an unchecking client", a.ServerTLS(), blind, "gave no certificate",
		"got no certificate from us")
	wantRefused(t, "a foreign authority, presented", a.ServerTLS(), presenting(foreign.pair(t)), notTrusted,
		"does not trust the authority")
	wantRefused(t, "expired", a.ServerTLS(),
		presenting(ca.pair(t, func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Minute) })),
		"until 2030-05-17T11:59:00Z, but here \"current time 2030-05-17T12:00:00Z is after", "expired or not yet valid")
	wantRefused(t, "for servers only", a.ServerTLS(),
		presenting(ca.pair(t, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] })),
		"serverAuth and clientAuth", "refuses our certificate")
	bare := &tls.Config{RootCAs: ca.pool(), Time: at(noon)}
	wantRefused(t, "no certificate", a.ServerTLS(), bare, "gave no certificate", "got no certificate from us")
	old := a.ClientTLS()
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	wantRefused(t, "TLS 1.2", b.ServerTLS(), old, "TLS 1.3", "TLS 1.3")
	trusting := given(t, ca) // without names, but with its own VerifyConnection
	trusting.VerifyConnection = func(tls.ConnectionState) error { return nil }
	free, err := FromTLS(trusting, Names{})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := free.ClientTLS()
	elsewhere.ServerName = "10.0.0.7"
	_, err = meet(t, b.ServerTLS(), elsewhere)
	if got := Explain(err); !strings.Contains(got, `does not carry the name "10.0.0.7": set ServerName of Config.TLS`) {
		t.Errorf("%q from %v", got, err)
	}

	secret := source(t, SecretConfig{})
	wantRefused(t, "a secret dials certificates", a.ServerTLS(), secret.ClientTLS(), "refuses our certificate",
		"or Config.Secret is set on one side")
	wantRefused(t, "certificates dial a secret", secret.ServerTLS(), a.ClientTLS(), "refuses our certificate",
		"has another secret")
}

func TestUsersCallbacksRenew(t *testing.T) {
	ca := newSigner(t, "ca")
	var current atomic.Pointer[tls.Certificate]
	renew := func() {
		pair := ca.pair(t)
		current.Store(&pair)
	}
	renew()
	config := given(t, ca)
	config.Certificates = nil
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return current.Load(), nil }
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		return current.Load(),
			nil
	}
	s := fromTLS(t, config)
	server, client := s.ServerTLS(), s.ClientTLS()
	for range 3 {
		_, _, seen := handshake(t, server, client)
		if len(seen.PeerCertificates) == 0 || !seen.PeerCertificates[0].Equal(current.Load().Leaf) {
			t.Fatal("the callback's certificate was not used")
		}
		renew()
	}
}

func TestChosenConfigurationsAreHardened(t *testing.T) {
	ca := newSigner(t, "ca")
	good := given(t, ca)
	for name, c := range map[string]struct {
		chosen *tls.Config
		err    error
		want   string
	}{
		"none": {nil, nil, "gave no certificate"},
		"weak": {func() *tls.Config { c := given(t, ca); c.ClientAuth = tls.NoClientCert; return c }(), nil,
			"gave no certificate"},
		"no ClientCAs":  {&tls.Config{Certificates: good.Certificates}, nil, "ClientCAs is empty"},
		"its own error": {nil, errors.New("busy"), "busy"},
	} {
		config := given(t, ca)
		config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.chosen, c.err }
		s := fromTLS(t, config)
		serverErr, clientErr := meet(t, s.ServerTLS(), &tls.Config{RootCAs: ca.pool(), Time: at(noon)})
		if serverErr == nil || clientErr == nil || !strings.Contains(Explain(serverErr), c.want) {
			t.Errorf("%s: server %v (%s), client %v", name, serverErr, Explain(serverErr), clientErr)
		}
		if c.want == "gave no certificate" {
			wantTalk(t, name, s.ServerTLS(), s.ClientTLS())
		}
	}
}

func TestConfigTLSIsChecked(t *testing.T) {
	ca := newSigner(t, "ca")
	for name, c := range map[string]struct {
		change func(*tls.Config)
		want   string
	}{
		"no certificate": {func(c *tls.Config) { c.Certificates = nil },
			"no certificate for accepted connections: set Certificates or GetCertificate"},
		"server only": {func(c *tls.Config) { c.GetCertificate, c.Certificates = noServerPair, nil },
			"no certificate for dialed connections: set Certificates or GetClientCertificate"},
		"client only": {func(c *tls.Config) { c.GetClientCertificate, c.Certificates = noClientPair, nil },
			"no certificate for accepted connections"},
		"empty certificate": {func(c *tls.Config) { c.Certificates = []tls.Certificate{{}} },
			"Certificates[0] lacks its certificate or its private key"},
		"no key": {func(c *tls.Config) { c.Certificates[0].PrivateKey = nil }, "Certificates[0] lacks"},
		"garbage certificate": {func(c *tls.Config) {
			c.Certificates[0].Certificate,
				c.Certificates[0].Leaf = [][]byte{{1}}, nil
		}, "cannot be read"},
		"no RootCAs":      {func(c *tls.Config) { c.RootCAs = nil }, "RootCAs is empty"},
		"empty RootCAs":   {func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, "RootCAs is empty"},
		"no ClientCAs":    {func(c *tls.Config) { c.ClientCAs = nil }, "ClientCAs is empty"},
		"empty ClientCAs": {func(c *tls.Config) { c.ClientCAs = x509.NewCertPool() }, "ClientCAs is empty"},
		"skip":            {func(c *tls.Config) { c.InsecureSkipVerify = true }, "InsecureSkipVerify is set"},
		"TLS 1.2":         {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, "MaxVersion is below TLS 1.3"},
		"for servers": {func(c *tls.Config) {
			c.Certificates[0] = ca.pair(t, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] })
		}, "serverAuth and clientAuth"},
	} {
		config := given(t, ca)
		c.change(config)
		_, err := FromTLS(config, Names{Peers: []string{"node.test"}})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "Config.TLS: ") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := FromTLS(nil, Names{}); err == nil || !strings.Contains(err.Error(), "Config.TLS") {
		t.Error(err)
	}
	_, err := FromTLS(&tls.Config{MaxVersion: tls.VersionTLS12, InsecureSkipVerify: true}, Names{})
	if got := strings.Count(err.Error(), "\n") + 1; got != 7 {
		t.Errorf("%d mistakes were reported, want all 7: %v", got, err)
	}
	weak := given(t, ca)
	weak.MinVersion, weak.ClientAuth, weak.ClientSessionCache = tls.VersionTLS10, tls.RequestClientCert,
		tls.NewLRUClientSessionCache(1)
	for _, c := range []*tls.Config{fromTLS(t, weak).ServerTLS(), fromTLS(t, weak).ClientTLS()} {
		if c.MinVersion != tls.VersionTLS13 || c.ClientAuth != tls.RequireAndVerifyClientCert ||
			c.ClientSessionCache != nil || !c.SessionTicketsDisabled {
			t.Errorf("not hardened: %x, %v", c.MinVersion, c.ClientAuth)
		}
	}
}

func noServerPair(*tls.ClientHelloInfo) (*tls.Certificate, error)        { return nil, nil }
func noClientPair(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return nil, nil }
