package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"
)

func dns(list ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) { c.DNSNames = list }
}

func uris(list ...string) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.DNSNames = nil
		for _, text := range list {
			u, _ := url.Parse(text)
			c.URIs = append(c.URIs, u)
		}
	}
}

// users returns three sources for the same pair: from a TLS configuration, from a configuration
// with GetConfigForClient, and from files.
func users(t *testing.T, ca *signer, pair tls.Certificate, list Names) map[string]*Source {
	t.Helper()
	plain := given(t, ca)
	plain.Certificates = []tls.Certificate{pair}
	a, err := FromTLS(plain, list)
	if err != nil {
		t.Fatal(err)
	}
	choosing := plain.Clone()
	choosing.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return plain, nil }
	b, err := FromTLS(choosing, list)
	if err != nil {
		t.Fatal(err)
	}
	f := newFolder(t)
	f.writePair(pair)
	f.writeAuthorities(ca)
	f.cfg.Names = list
	return map[string]*Source{"TLS": a, "GetConfigForClient": b, "TLSFiles": f.open()}
}

// Other services have valid certificates of the same authority, and must not be accepted as
// instances.
func TestOthersOfTheSameAuthorityAreRefused(t *testing.T) {
	ca := newSigner(t, "ca")
	list := Names{Peers: []string{"Orders.internal", "orders-new.internal"},
		Guests: map[string]string{"laptop.example": "read *\n", "batch.internal": "member"}}
	ours := users(t, ca, ca.pair(t, dns("orders.internal")), list)
	const noName = "carries no listed name: it is not an instance"
	for how, s := range ours {
		for _, name := range []string{"billing.internal", "x.orders.internal", "*.internal",
			"orders.internal.evil.example", "node.test"} {
			stranger := presenting(ca.pair(t, dns(name)))
			wantRefused(t, how+", accepting "+name, s.ServerTLS(), stranger, noName, "refuses our certificate")
			wantRefused(t, how+", dialing "+name, stranger, s.ClientTLS(), "refuses our certificate", noName)
		}
		bare := presenting(ca.pair(t, func(c *x509.Certificate) {
			c.DNSNames, c.Subject.CommonName = nil,
				"orders.internal"
		}))
		wantRefused(t, how+", a common name", s.ServerTLS(), bare, noName, "refuses our certificate")
		for other, o := range ours {
			wantTalk(t, how+" dials "+other+" with one certificate on all instances", o.ServerTLS(), s.ClientTLS())
		}
		renamed := presenting(ca.pair(t, dns("ORDERS-new.internal", "other.example")))
		wantTalk(t, how+", a rolling rename, accepting", s.ServerTLS(), renamed)
		wantTalk(t, how+", a rolling rename, dialing", renamed, s.ClientTLS())
		foreign := presenting(newSigner(t, "foreign").pair(t, dns("orders.internal")))
		wantRefused(t, how+", dialing a foreign authority", foreign, s.ClientTLS(), "refuses our certificate",
			"not trusted here")
		wantRefused(t, how+", accepting a foreign authority", s.ServerTLS(), foreign, "not trusted here",
			"does not trust the authority")
		expired := presenting(ca.pair(t, dns("orders.internal"),
			func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Minute) }))
		wantRefused(t, how+", dialing an expired one", expired, s.ClientTLS(), "refuses our certificate",
			"renew the certificate")
		client := presenting(ca.pair(t, dns("orders.internal"),
			func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }))
		wantRefused(t, how+", dialing one for clients", client, s.ClientTLS(), "refuses our certificate",
			"serverAuth and clientAuth")
		authority := presenting(tls.Certificate{Certificate: [][]byte{ca.cert.Raw}, PrivateKey: ca.key})
		if a, b := meet(t, authority, s.ClientTLS()); a == nil || b == nil {
			t.Errorf("%s dials the authority itself", how)
		}
		if p, err := s.Own(); err != nil || p.Tier != Root || p.Name != "orders.internal" {
			t.Errorf("%s: %+v, %v", how, p, err)
		}
		for name, tier := range map[string]Tier{"laptop.example": Guest, "batch.internal": Member,
			"orders-new.internal": Root} {
			p, err := accepted(t, s, fromPair(t, ca, ca.pair(t, dns(name, "also.example")), list))
			if err != nil || p.Tier != tier || p.Name != name || (p.Capability == nil) != (tier == Root) ||
				!p.NotAfter.Equal(noon.Add(time.Hour)) {
				t.Errorf("%s: %s is %+v, %v", how, name, p, err)
			}
			if tier != Root {
				wantRefused(t, how+", dialing a guest", presenting(ca.pair(t, dns(name))), s.ClientTLS(),
					"refuses our certificate", "the other side is not an instance")
			}
		}
		wantRefused(t, how+", two guests in one", s.ServerTLS(),
			presenting(ca.pair(t, dns("laptop.example", "batch.internal"))), noName, "refuses our certificate")
	}
}

func fromPair(t *testing.T, ca *signer, pair tls.Certificate, list Names) *Source {
	t.Helper()
	config := given(t, ca)
	config.Certificates = []tls.Certificate{pair}
	s, err := FromTLS(config, list)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A SPIFFE ID is a URI. The certificate contains no host name, so no host name is compared.
func TestSPIFFE(t *testing.T) {
	ca := newSigner(t, "ca")
	const id = "spiffe://example.org/orders"
	list := Names{Peers: []string{id}, Guests: map[string]string{"spiffe://example.org/cron": "lock cron/*"}}
	for how, s := range users(t, ca, ca.pair(t, uris(id)), list) {
		wantTalk(t, how, s.ServerTLS(), s.ClientTLS())
		named := s.ClientTLS()
		named.ServerName = "10.0.0.7" // transport sets the dialed host if no name is set
		wantTalk(t, how+", at an address", s.ServerTLS(), named)
		for _, other := range [][]string{{"spiffe://example.org/billing"}, {"spiffe://evil.example/orders"},
			{"spiffe://example.org/orders/x"}, {id, "spiffe://example.org/x"}, nil} {
			wantRefused(t, how+" accepting", s.ServerTLS(), presenting(ca.pair(t, uris(other...))),
				"carries no listed name", "refuses our certificate")
			wantRefused(t, how+" dialing", presenting(ca.pair(t, uris(other...))), s.ClientTLS(),
				"refuses our certificate", "carries no listed name")
		}
		if p, err := accepted(t, s, fromPair(t, ca, ca.pair(t, uris("spiffe://example.org/cron")),
			list)); err != nil || p.Tier != Guest || p.Name != "spiffe://example.org/cron" {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

func TestNamesAreRequired(t *testing.T) {
	ca := newSigner(t, "ca")
	for name, c := range map[string]struct {
		list Names
		want string
	}{
		"none":       {Names{}, "Config.TLSPeers: is empty"},
		"only guest": {Names{Guests: map[string]string{"a": "read *"}}, "Config.TLSPeers: is empty"},
		"an address": {Names{Peers: []string{"10.0.0.7"}}, "Config.TLSPeers[0]: \"10.0.0.7\" is an IP address"},
		"a port":     {Names{Peers: []string{"a", "b:7947"}}, "Config.TLSPeers[1]: \"b:7947\" is neither"},
		"empty":      {Names{Peers: []string{""}}, "is neither"},
		"a URL":      {Names{Peers: []string{"https://a"}}, "is neither"},
		"no path":    {Names{Peers: []string{"spiffe://example.org"}}, "is not a SPIFFE ID"},
		"a slash":    {Names{Peers: []string{"spiffe://example.org/"}}, "is not a SPIFFE ID"},
		"a query":    {Names{Peers: []string{"spiffe://example.org/a?b"}}, "is not a SPIFFE ID"},
		"both": {Names{Peers: []string{"a"}, Guests: map[string]string{"A": "read *"}},
			"listed twice, or in Config.TLSPeers too"},
		"no rights": {Names{Peers: []string{"a"}, Guests: map[string]string{"b": ""}},
			`Config.TLSGuests["b"]: capability: a capability grants at least one right`},
		"bad rights": {Names{Peers: []string{"a"}, Guests: map[string]string{"b": "take *"}}, "a right is one of"},
	} {
		_, err := FromTLS(given(t, ca), c.list)
		f := newFolder(t)
		f.cfg.Names = c.list
		f.writePair(ca.pair(t))
		f.writeAuthorities(ca)
		_, files := FromFiles(f.cfg)
		for _, err := range []error{err, files} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
	config := given(t, ca)
	config.ServerName = "node.test"
	s, err := FromTLS(config, Names{})
	if err != nil {
		t.Fatal(err)
	}
	wantTalk(t, "ServerName alone", s.ServerTLS(), s.ClientTLS())
	wantRefused(t, "ServerName alone, another", s.ServerTLS(), presenting(ca.pair(t, dns("billing.internal"))),
		"carries no listed name", "refuses our certificate")
	if _, err := fromPair(t, ca, ca.pair(t, dns("billing.internal")),
		Names{Peers: []string{"node.test"}}).Own(); err == nil || !strings.Contains(Explain(err), "billing.internal") {
		t.Errorf("its own certificate is not listed: %v", err)
	}
}

func TestUsersOwnCheck(t *testing.T) {
	ca := newSigner(t, "ca")
	errOwn := errors.New("revoked")
	var verdict error
	config := given(t, ca)
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if len(state.VerifiedChains) == 0 {
			t.Error("the user's check is asked about a peer that is not verified")
		}
		return verdict
	}
	raw := 0
	config.VerifyPeerCertificate = func(_ [][]byte, chains [][]*x509.Certificate) error {
		if raw++; len(chains) == 0 {
			t.Error("no chains")
		}
		return nil
	}
	for how, list := range map[string]Names{"alone": {}, "beside a list": {Peers: []string{"node.test"}}} {
		s, err := FromTLS(config, list)
		if err != nil {
			t.Fatal(err)
		}
		verdict = nil
		s1, c1, seen := handshake(t, s.ServerTLS(), s.ClientTLS())
		if s1 != nil || c1 != nil {
			t.Fatal(how, s1, c1)
		}
		if err := s.Recheck(seen); err != nil {
			t.Error(how, err)
		}
		if p, err := s.Peer(seen); err != nil || p.Tier != Root || p.Name != "node.test" {
			t.Errorf("%s: %+v, %v", how, p, err)
		}
		verdict = errOwn
		if s1, c1 := meet(t, s.ServerTLS(), presenting(ca.pair(t))); !errors.Is(s1, errOwn) || c1 == nil {
			t.Error(how, s1, c1)
		}
		if s1, c1 := meet(t, presenting(ca.pair(t)), s.ClientTLS()); !errors.Is(c1, errOwn) || s1 == nil {
			t.Error(how, s1, c1)
		}
		if err := s.Recheck(seen); !errors.Is(err, errOwn) {
			t.Error(how, err)
		}
	}
	if raw == 0 {
		t.Error("VerifyPeerCertificate was dropped")
	}
	chosen := given(t, ca)
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return chosen, nil }
	s, err := FromTLS(config, Names{})
	if err != nil {
		t.Fatal(err)
	}
	if s1, _ := meet(t, s.ServerTLS(), presenting(ca.pair(t, dns("billing.internal")))); s1 == nil ||
		!strings.Contains(s1.Error(), "Config.TLSPeers: is empty") {
		t.Error(s1)
	}
}

func TestRecheck(t *testing.T) {
	ca, next := newSigner(t, "ca"), newSigner(t, "next")
	f := newFolder(t)
	f.cfg.Names = Names{Peers: []string{"node.test"}}
	f.writePair(ca.pair(t))
	f.writeAuthorities(ca, next)
	s := f.open()
	var inbound tls.ConnectionState
	s1, c1, outbound := handshake(t, watched(s.ServerTLS(), &inbound), s.ClientTLS())
	if s1 != nil || c1 != nil {
		t.Fatal(s1, c1)
	}
	both := func(why string, good bool) {
		t.Helper()
		for side, state := range map[string]tls.ConnectionState{"accepted": inbound, "dialed": outbound} {
			if err := s.Recheck(state); (err == nil) != good {
				t.Errorf("%s, %s: %v", why, side, err)
			}
		}
	}
	both("at once", true)
	f.writeAuthorities(next)
	f.look()
	both("the authority is gone", false)
	f.writeAuthorities(ca)
	f.look()
	both("it is back", true)
	f.clock.set(noon.Add(2 * time.Hour))
	both("the certificate has ended", false)

	clock := &wall{now: noon}
	secret := source(t, SecretConfig{Now: clock.Now})
	s1, c1, outbound = handshake(t, secret.ServerTLS(), secret.ClientTLS())
	if s1 != nil || c1 != nil || secret.Recheck(outbound) != nil {
		t.Fatal(s1, c1, secret.Recheck(outbound))
	}
	clock.set(noon.Add(lifetime + time.Minute))
	if err := secret.Recheck(outbound); err == nil {
		t.Error("its certificate has ended, and it is let go on")
	}
	given := given(t, ca)
	given.Time = clock.Now
	user, err := FromTLS(given, Names{Peers: []string{"node.test"}})
	if err != nil {
		t.Fatal(err)
	}
	clock.set(noon)
	_, _, outbound = handshake(t, user.ServerTLS(), user.ClientTLS())
	if err := user.Recheck(outbound); err != nil {
		t.Error(err)
	}
	clock.set(noon.Add(2 * time.Hour))
	if err := user.Recheck(outbound); err == nil {
		t.Error("the user's certificate has ended, and it is let go on")
	}
	for name, s := range map[string]*Source{"a secret": secret, "files": s, "TLS": user} {
		if _, err := s.Peer(tls.ConnectionState{}); err == nil {
			t.Errorf("%s: a connection without certificates is a peer", name)
		}
		if err := s.Recheck(tls.ConnectionState{}); err == nil {
			t.Errorf("%s: a connection without certificates may go on", name)
		}
	}
}
