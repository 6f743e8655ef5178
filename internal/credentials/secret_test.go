package credentials

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"
	"testing"
	"time"
)

const saysRefused = "refuses our certificate: Config.Secret or Config.Cluster differ"

func TestOneSecretIsEnough(t *testing.T) {
	a, b := source(t, SecretConfig{}), source(t, SecretConfig{Secret: " " + secretA + "\n"})
	for i := range 2 { // the second round uses the same certificates
		wantTalk(t, fmt.Sprint("a to b, ", i), b.ServerTLS(), a.ClientTLS())
		wantTalk(t, fmt.Sprint("b to a, ", i), a.ServerTLS(), b.ClientTLS())
	}
	wantTalk(t, "a to itself: one certificate on both sides", a.ServerTLS(), a.ClientTLS())
	_, _, seen := handshake(t, b.ServerTLS(), a.ClientTLS())
	if seen.Version != tls.VersionTLS13 || seen.DidResume || len(seen.PeerCertificates[0].RawSubject) != 2 {
		t.Errorf("version %x, resumed %v, peer %q", seen.Version, seen.DidResume, seen.PeerCertificates[0].Subject)
	}
	if len(seen.PeerCertificates) != 1 {
		t.Errorf("%d certificates crossed the network; the authority's has no business there",
			len(seen.PeerCertificates))
	}
}

func TestNothingIsResumed(t *testing.T) {
	a, b := source(t, SecretConfig{}), source(t, SecretConfig{})
	client, server := a.ClientTLS(), b.ServerTLS()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	for range 3 {
		s, c, seen := handshake(t, server, client)
		if s != nil || c != nil || seen.DidResume {
			t.Errorf("server %v, client %v, resumed %v", s, c, seen.DidResume)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	ours := source(t, SecretConfig{})
	wrong := source(t, SecretConfig{Secret: secretB})
	other := source(t, SecretConfig{Cluster: "billing"})
	const another = "the other side has another secret (\"mortise authority "
	wantRefused(t, "wrong secret dials", ours.ServerTLS(), wrong.ClientTLS(), saysRefused, "has another secret")
	wantRefused(t, "wrong secret is dialed", wrong.ServerTLS(), ours.ClientTLS(), saysRefused, another)
	const cluster = "or another Config.Cluster: set the same Config.Secret and Config.Cluster"
	wantRefused(t, "other cluster dials", ours.ServerTLS(), other.ClientTLS(), saysRefused, cluster)
	wantRefused(t, "other cluster is dialed", other.ServerTLS(), ours.ClientTLS(), saysRefused, cluster)

	// If the client does not check the server, the server itself must refuse the client.
	heedless := func(s *Source) *tls.Config {
		c := s.ClientTLS()
		c.InsecureSkipVerify, c.VerifyConnection = true, nil
		return c
	}
	const untrusted = "does not trust the authority of our certificate"
	wantRefused(t, "wrong secret, an unchecking client", ours.ServerTLS(), heedless(wrong), another, untrusted)
	wantRefused(t, "other cluster, an unchecking client", ours.ServerTLS(), heedless(other), another, untrusted)
	bare := heedless(wrong)
	bare.GetClientCertificate = nil
	wantRefused(t, "no certificate", ours.ServerTLS(), bare, "gave no certificate", "got no certificate from us")
	old := heedless(source(t, SecretConfig{}))
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	wantRefused(t, "TLS 1.2 client", ours.ServerTLS(), old, "does not speak TLS 1.3", "refuses our version of TLS")
	oldServer := source(t, SecretConfig{}).ServerTLS()
	oldServer.MinVersion, oldServer.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	wantRefused(t, "TLS 1.2 server", oldServer, ours.ClientTLS(), "TLS", "TLS")
}

// named changes a certificate so that it looks like one of the cluster.
func named(c *x509.Certificate) { c.DNSNames = []string{leafName(publicA(), "orders")} }

func publicA() ed25519.PublicKey {
	a, err := newAuthority(secretA, "orders")
	if err != nil {
		panic(err)
	}
	return a.public()
}

func TestForgedCertificates(t *testing.T) {
	ours := source(t, SecretConfig{})
	authority, err := newAuthority(secretA, "orders")
	if err != nil {
		t.Fatal(err)
	}
	foreign := newSigner(t, "foreign")
	selfMade := (*signer)(nil).pair(t, named)

	// An attacker has the certificate of the authority, but not its key.
	_, stolen, _ := ed25519.GenerateKey(rand.Reader)
	posing := (&signer{cert: &x509.Certificate{RawSubject: authority.cert.RawSubject,
		SubjectKeyId: authority.cert.SubjectKeyId}, key: stolen}).pair(t, named)
	posing.Certificate = append(posing.Certificate, authority.cert.Raw)

	// The owner of a node's certificate tries to sign other certificates.
	n := &issuer{cert: authority.cert, by: authority.key, cluster: "orders", key: stolen, now: at(noon),
		authority: authority.public()}
	member, err := n.sign(noon)
	if err != nil {
		t.Fatal(err)
	}
	lent := (&signer{cert: member.Leaf, key: stolen}).pair(t, named)
	lent.Certificate = append(lent.Certificate, member.Certificate[0])

	byAuthority := &signer{cert: authority.cert, key: authority.key}
	for name, c := range map[string]struct {
		pair tls.Certificate
		says string
	}{
		// These certificates look as if they were made from another secret. That is the most likely
		// cause of the error, so the text names it.
		"self-made":         {selfMade, "another secret"},
		"foreign authority": {foreign.pair(t, named), "another secret"},
		"poses as ours":     {posing, "another secret"},
		"the authority itself, another's key": {tls.Certificate{Certificate: [][]byte{authority.cert.Raw},
			PrivateKey: stolen}, ""},
		"the authority itself, its own key": {tls.Certificate{Certificate: [][]byte{authority.cert.Raw},
			PrivateKey: authority.key}, ""},
		"signed by a member": {lent, ""},
		"ours, another name": {byAuthority.pair(t), ""},
		"ours, a name below": {byAuthority.pair(t,
			func(c *x509.Certificate) { c.DNSNames = []string{"*.x." + zone(publicA(), "orders")} }), "another cluster"},
		"ours, an authority": {byAuthority.pair(t, named, func(c *x509.Certificate) {
			c.IsCA, c.BasicConstraintsValid, c.KeyUsage = true, true,
				x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
		}), "certificate of an authority"},
		"ours, expired": {byAuthority.pair(t, named,
			func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Minute) }), "clocks differ too much"},
		"ours, not yet valid": {byAuthority.pair(t, named,
			func(c *x509.Certificate) { c.NotBefore = noon.Add(time.Minute) }), "clocks differ too much"},
		"ours, for no use": {byAuthority.pair(t, named,
			func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }),
			"serverAuth and clientAuth"},
	} {
		s, peer := meet(t, ours.ServerTLS(), presenting(c.pair))
		if s == nil || peer == nil || !strings.Contains(Explain(s), c.says) {
			t.Errorf("%s dials: server %v (%s), client %v", name, s, Explain(s), peer)
		}
		peer, mine := meet(t, presenting(c.pair), ours.ClientTLS())
		if mine == nil || peer == nil || !strings.Contains(Explain(mine), c.says) {
			t.Errorf("%s is dialed: client %v (%s), server %v", name, mine, Explain(mine), peer)
		}
	}
	wantTalk(t, "a good one, presented in the same way", ours.ServerTLS(), presenting(byAuthority.pair(t, named)))
	wantTalk(t, "a good one, presented in the same way", presenting(byAuthority.pair(t, named)), ours.ClientTLS())
}

func TestRotation(t *testing.T) {
	steps := []SecretConfig{
		{Secret: secretA},
		{Secret: secretA, Old: []string{secretB}},
		{Secret: secretB, Old: []string{secretA}},
		{Secret: secretB},
	}
	for i, from := range steps {
		for j, to := range steps {
			why := fmt.Sprintf("step %d dials step %d", i, j)
			client, server := source(t, from), source(t, to)
			if i-j <= 1 && j-i <= 1 {
				wantTalk(t, why, server.ServerTLS(), client.ClientTLS())
				continue
			}
			if s, c := meet(t, server.ServerTLS(), client.ClientTLS()); s == nil || c == nil {
				t.Errorf("%s: they talk (%v, %v); the old secret would never lose its worth", why, s, c)
			}
		}
	}
	third := source(t, SecretConfig{Secret: secretC, Old: []string{secretA}})
	wantRefused(t, "an old secret in common is not enough to be let in", third.ServerTLS(),
		source(t, SecretConfig{Secret: secretB, Old: []string{secretA}}).ClientTLS(), saysRefused, "another secret")
}

func TestSecretConfigIsChecked(t *testing.T) {
	good := SecretConfig{Secret: secretA, Cluster: "orders"}
	for name, c := range map[string]struct {
		change func(*SecretConfig)
		want   string
	}{
		"none": {func(c *SecretConfig) { c.Secret = "" },
			"Config.Secret: 0 bytes are too few, at least 16 are needed: make one with `mortise secret`"},
		"short": {func(c *SecretConfig) { c.Secret = "hunter2hunter2" }, "Config.Secret: 14 bytes"},
		"white space": {func(c *SecretConfig) { c.Secret = strings.Repeat(" ", 40) + "hunter2" },
			"Config.Secret: 7 bytes"},
		"old short": {func(c *SecretConfig) { c.Old = []string{secretB, "hunter2"} },
			"Config.OldSecrets[1]: 7 bytes"},
		"old empty": {func(c *SecretConfig) { c.Old = []string{""} }, "Config.OldSecrets[0]: is empty"},
		"cluster":   {func(c *SecretConfig) { c.Cluster = "" }, "Config.Cluster: is empty"},
		"one letter": {func(c *SecretConfig) { c.Secret = strings.Repeat("a", 40) },
			"Config.Secret: can be guessed: it is estimated at"},
		"a phrase": {func(c *SecretConfig) { c.Secret = "hunter2 antidisestablishment" },
			"Config.Secret: can be guessed"},
		"cut": {func(c *SecretConfig) { c.Secret = secretA[:40] }, "Config.Secret: its checksum is wrong"},
		"mistyped": {func(c *SecretConfig) { c.Secret = strings.Replace(secretA, "a2bf", "a2be", 1) },
			"Config.Secret: its checksum is wrong"},
		"upper case": {func(c *SecretConfig) { c.Secret = "msk1_" + strings.ToUpper(secretA[5:]) },
			"Config.Secret: its checksum is wrong"},
		"old phrase": {func(c *SecretConfig) { c.Old = []string{"hunter2 antidisestablishment"} },
			"Config.OldSecrets[0]: can be guessed"},
		"old derived": {func(c *SecretConfig) { c.Old = []string{"msd1_x"} },
			"Config.OldSecrets[0]: is a derived secret"},
		"derived cut": {func(c *SecretConfig) { c.Secret = "msd1_x" }, "Config.Secret: its checksum is wrong"},
	} {
		cfg := good
		c.change(&cfg)
		_, err := FromSecret(cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	_, err := FromSecret(SecretConfig{Old: []string{"x"}})
	for _, field := range []string{"Config.Secret", "Config.OldSecrets", "Config.Cluster"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if _, err := FromSecret(SecretConfig{Secret: secretA, Cluster: strings.Repeat("ü", 64)}); err != nil {
		t.Error("the longest label:", err)
	}
}
