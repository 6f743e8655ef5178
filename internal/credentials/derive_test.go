package credentials

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
)

func text(t testing.TB, until time.Time, words ...string) string {
	t.Helper()
	c, err := capability.Build("cron-host", until, words...)
	if err != nil {
		t.Fatal(err)
	}
	return c.Text()
}

func derive(t testing.TB, secret string, until time.Time, words ...string) string {
	t.Helper()
	d, err := DeriveSecret(secret, "orders", text(t, until, words...))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func accepted(t testing.TB, server, client *Source) (Peer, error) {
	t.Helper()
	var seen tls.ConnectionState
	s, c := meet(t, watched(server.ServerTLS(), &seen), client.ClientTLS())
	if err := errors.Join(s, c); err != nil {
		return Peer{}, err
	}
	return server.Peer(seen)
}

// watched returns a copy of config that records the connection states that it verifies.
func watched(config *tls.Config, seen *tls.ConnectionState) *tls.Config {
	config = config.Clone()
	if check := config.VerifyConnection; check != nil {
		config.VerifyConnection = func(state tls.ConnectionState) error { *seen = state; return check(state) }
	}
	if choose := config.GetConfigForClient; choose != nil {
		config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := choose(hello)
			return watched(chosen, seen), err
		}
	}
	return config
}

func TestDerivedSecretsComeIn(t *testing.T) {
	server := source(t, SecretConfig{})
	for _, c := range []struct {
		word string
		tier Tier
	}{{"lock cron/*", Guest}, {"member", Member}} {
		secret := derive(t, secretA, time.Time{}, c.word)
		if !IsDerived(secret) || len(secret) > 1000 {
			t.Errorf("%d characters: %s", len(secret), secret)
		}
		client := source(t, SecretConfig{Secret: " " + secret + "\n"})
		got, err := accepted(t, server, client)
		if err != nil || got.Tier != c.tier || got.Name != "cron-host" ||
			got.Capability.Text() != text(t, time.Time{}, c.word) {
			t.Errorf("%s: %+v, %v", c.word, got, err)
		}
		if want := noon.Add(lifetime); !got.NotAfter.Equal(want) {
			t.Errorf("it ends at %v, want %v", got.NotAfter, want)
		}
		own, err := client.Own()
		if err != nil || own.Tier != c.tier || own.Capability.Hash() != got.Capability.Hash() {
			t.Errorf("%+v, %v", own, err)
		}
		_, _, seen := handshake(t, server.ServerTLS(), client.ClientTLS())
		if p, err := client.Peer(seen); err != nil || p.Tier != Root || p.Capability != nil {
			t.Errorf("the server is %+v, %v", p, err)
		}
	}
	if p, err := accepted(t, server, source(t, SecretConfig{})); err != nil || p.Tier != Root || p.Capability != nil {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := server.Own(); err != nil || p.Tier != Root {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestGuestPosesAsAServer(t *testing.T) {
	guest := source(t, SecretConfig{Secret: derive(t, secretA, time.Time{}, "lock a/*")})
	pair, err := guest.ClientTLS().GetClientCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, victim := range map[string]*Source{
		"an instance":         source(t, SecretConfig{}),
		"another guest":       source(t, SecretConfig{Secret: derive(t, secretA, time.Time{}, "lock b/*")}),
		"one of equal rights": source(t, SecretConfig{Secret: derive(t, secretA, time.Time{}, "lock a/*")}),
		"a member":            source(t, SecretConfig{Secret: derive(t, secretA, time.Time{}, "member")}),
	} {
		wantRefused(t, name, presenting(*pair), victim.ClientTLS(), "refuses our certificate",
			"the other side is not an instance, though it answers at an instance's address")
		wantRefused(t, name+", by its own configuration", guest.ServerTLS(), victim.ClientTLS(), "", "")
	}
}

// The rights of a peer must come from the certificate that the root secret has signed, and not from
// the leaf certificate.
func TestTextInALeafMeansNothing(t *testing.T) {
	server := source(t, SecretConfig{})
	guest, err := parseDerived(derive(t, secretA, time.Time{}, "read a"), "orders")
	if err != nil {
		t.Fatal(err)
	}
	more := func(c *x509.Certificate) {
		c.NotAfter = never()
		c.ExtraExtensions = []pkix.Extension{{Id: textID(), Value: []byte(text(t, time.Time{}, "member", "force *"))}}
	}
	pair := (&signer{cert: guest.cert, key: guest.key}).pair(t, named, more)
	pair.Certificate = append(pair.Certificate, guest.cert.Raw)
	var seen tls.ConnectionState
	config := server.ServerTLS()
	config.VerifyConnection = func(state tls.ConnectionState) error { seen = state; return nil }
	if s, c := meet(t, config, presenting(pair)); s != nil || c != nil {
		t.Fatal(s, c)
	}
	if p, err := server.Peer(seen); err != nil || p.Tier != Guest ||
		p.Capability.Text() != text(t, time.Time{}, "read a") {
		t.Errorf("%+v, %v", p, err)
	}
}

// bent returns the certificate of a derived secret, modified by change before the authority signs
// it.
func bent(t testing.TB, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	a, err := newAuthority(secretA, "orders")
	if err != nil {
		t.Fatal(err)
	}
	between, key := intermediate(t, a.cert, a.key, change)
	pair := (&signer{cert: between, key: key}).pair(t, named)
	pair.Certificate = append(pair.Certificate, between.Raw)
	return pair
}

func intermediate(t testing.TB, parent *x509.Certificate, by ed25519.PrivateKey,
	change func(*x509.Certificate)) (*x509.Certificate, ed25519.PrivateKey) {
	t.Helper()
	public, key, _ := ed25519.GenerateKey(rand.Reader)
	template := &x509.Certificate{
		SerialNumber: parent.SerialNumber, Subject: pkix.Name{CommonName: "mine"}, NotBefore: always(),
		NotAfter: never(), SubjectKeyId: public[:20],
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		ExtraExtensions: []pkix.Extension{{Id: textID(), Value: []byte(text(t, time.Time{}, "member", "force *"))}},
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestIntermediateSignsAnIntermediate(t *testing.T) {
	server := source(t, SecretConfig{})
	guest, err := parseDerived(derive(t, secretA, time.Time{}, "read a"), "orders")
	if err != nil {
		t.Fatal(err)
	}
	second, key := intermediate(t, guest.cert, guest.key, func(*x509.Certificate) {})
	pair := (&signer{cert: second, key: key}).pair(t, named)
	pair.Certificate = append(pair.Certificate, second.Raw, guest.cert.Raw)
	if s, c := meet(t, server.ServerTLS(), presenting(pair)); s == nil || c == nil {
		t.Errorf("a guest has made itself another: %v, %v", s, c)
	}
	// Chains of other lengths are refused even if crypto/x509 accepts them.
	leaf := &x509.Certificate{}
	for _, chain := range [][]*x509.Certificate{nil, {leaf}, {leaf, guest.cert, guest.cert, guest.cert}} {
		if p, err := byChain(chain); err == nil {
			t.Errorf("a chain of %d is %+v", len(chain), p)
		}
	}
}

// Only texts that the command "mortise secret" writes are accepted, even if the root secret has
// signed another text.
func TestTextsThatAreNotCanonical(t *testing.T) {
	server := source(t, SecretConfig{})
	with := func(text string) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtraExtensions[0].Value = []byte(text) }
	}
	good := text(t, time.Time{}, "lock a")
	for name, change := range map[string]func(*x509.Certificate){
		"none":     func(c *x509.Certificate) { c.ExtraExtensions = nil },
		"empty":    with(""),
		"order":    with("mortise-capability/1\nfor x\nread *\nlock *\n"),
		"spelling": with("mortise-capability/1\nfor x\nlock a%2a\n"),
		// The capability ends, but the certificate does not.
		"no end":     with("mortise-capability/1\nfor x\nuntil 2031-01-01T00:00:00Z\nlock a\n"),
		"other end":  func(c *x509.Certificate) { c.NotAfter = noon.AddDate(1, 0, 0); with(good)(c) },
		"no newline": with(strings.TrimSpace(good)),
	} {
		s, c := meet(t, server.ServerTLS(), presenting(bent(t, change)))
		if s == nil || c == nil || !strings.Contains(Explain(s), "not one that mortise secret has made") {
			t.Errorf("%s: %v (%s), %v", name, s, Explain(s), c)
		}
	}
	if s, c := meet(t, server.ServerTLS(), presenting(bent(t, with(good)))); s != nil || c != nil {
		t.Errorf("a good one, presented in the same way: %v, %v", s, c)
	}
	for _, text := range []string{"", "mortise-capability/1\nfor x\nread *\nlock *\n"} {
		if _, err := DeriveSecret(secretA, "orders", text); !errors.Is(err, capability.ErrNotCanonical) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestDerivedSecretsAndRotation(t *testing.T) {
	steps := []SecretConfig{
		{Secret: secretA},
		{Secret: secretA, Old: []string{secretB}},
		{Secret: secretB, Old: []string{secretC, secretA}},
		{Secret: secretB},
	}
	ofA, ofB := source(t, SecretConfig{Secret: derive(t, secretA, time.Time{}, "lock a")}),
		source(t, SecretConfig{Secret: derive(t, secretB, time.Time{}, "lock a")})
	for i, step := range steps {
		server := source(t, step)
		for j, c := range []struct {
			guest *Source
			in    bool
		}{{ofA, i < 3}, {ofB, i > 0}} {
			p, err := accepted(t, server, c.guest)
			if (err == nil) != c.in || c.in && p.Tier != Guest {
				t.Errorf("step %d, secret %d: %+v, %v", i, j, p, err)
			}
		}
	}
	dropped := source(t, steps[3])
	wantRefused(t, "after the rotation", dropped.ServerTLS(), ofA.ClientTLS(), "refuses our certificate",
		"has another secret")
	deaf := ofA.ClientTLS() // accepts every server, so the server must refuse the client
	deaf.InsecureSkipVerify, deaf.VerifyConnection = true, nil
	wantRefused(t, "after the rotation, an unchecking client", dropped.ServerTLS(), deaf, "not trusted here",
		"does not trust the authority")
	one, _ := parseDerived(derive(t, secretA, time.Time{}, "lock a"), "orders")
	two, _ := parseDerived(derive(t, secretB, time.Time{}, "lock a"), "orders")
	if one.capability.Hash() != two.capability.Hash() {
		t.Error("the rights are others after the rotation: sessions would end")
	}
}

func TestDerivedSecretsEnd(t *testing.T) {
	until := noon.Add(3 * time.Hour)
	secret := derive(t, secretA, until, "lock a")
	clock := &wall{now: noon}
	guest, server := source(t, SecretConfig{Secret: secret, Now: clock.Now}), source(t, SecretConfig{Now: clock.Now})
	p, err := accepted(t, server, guest)
	if err != nil || !p.NotAfter.Equal(until) {
		t.Fatalf("%+v, %v", p, err)
	}
	_, _, seen := handshake(t, server.ServerTLS(), guest.ClientTLS())
	if err := guest.Recheck(seen); err != nil {
		t.Error(err)
	}
	clock.set(until.Add(time.Second))
	slow := source(t, SecretConfig{Secret: secret}) // its clock is behind
	wantRefused(t, "after its end", server.ServerTLS(), slow.ClientTLS(),
		"derived secret ended at 2030-05-17T15:00:00Z", "expired")
	if _, err := FromSecret(SecretConfig{Secret: secret, Cluster: "orders", Now: clock.Now}); err == nil ||
		!strings.Contains(err.Error(), "ended at 2030-05-17T15:00:00Z") {
		t.Error(err)
	}
}

func TestDerivedSecretsAreChecked(t *testing.T) {
	secret := derive(t, secretA, time.Time{}, "lock a")
	for name, c := range map[string]struct {
		config SecretConfig
		want   string
	}{
		"cut": {SecretConfig{Secret: secret[:len(secret)-3], Cluster: "orders"}, "checksum"},
		"mistyped": {SecretConfig{Secret: strings.Replace(secret, secret[100:101], "-", 1), Cluster: "orders"},
			"checksum"},
		"another cluster": {SecretConfig{Secret: secret, Cluster: "billing"},
			"was derived for another cluster than \"billing\""},
		"old secrets": {SecretConfig{Secret: secret, Cluster: "orders", Old: []string{secretB}},
			"Config.OldSecrets: is set together with a derived Secret"},
	} {
		if _, err := FromSecret(c.config); err == nil || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(err.Error(), secret[5:20]) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := DeriveSecret(secret, "orders", text(t, time.Time{}, "lock a")); !errors.Is(err, errDerived) {
		t.Error("a derived secret derives:", err)
	}
	for _, weak := range []string{"", "hunter2", strings.Repeat("a", 40)} {
		if _, err := DeriveSecret(weak, "orders", text(t, time.Time{}, "lock a")); err == nil {
			t.Errorf("%q derives", weak)
		}
	}
}

// FuzzParseDerived checks that a certificate is not accepted together with another authority.
func FuzzParseDerived(f *testing.F) {
	secret, err := DeriveSecret(secretA, "orders", "mortise-capability/1\nfor x\nlock a\n")
	if err != nil {
		f.Fatal(err)
	}
	payload, _ := base64.RawURLEncoding.DecodeString(secret[len(derivedPrefix):])
	f.Add(payload[:len(payload)-checksumBytes])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		glued := derivedPrefix + base64.RawURLEncoding.EncodeToString(append(payload[:len(payload):len(payload)],
			checksum(derivedPrefix, payload)...))
		d, err := parseDerived(glued, "orders")
		if err != nil {
			return
		}
		if d.capability == nil || !d.cert.IsCA || d.cert.CheckSignatureFrom(d.authority.cert) != nil {
			t.Fatalf("%+v", d)
		}
		if _, err := FromSecret(SecretConfig{Secret: glued, Cluster: "orders"}); err != nil &&
			!strings.Contains(err.Error(), "ended at") {
			t.Fatal(err)
		}
	})
}

func TestLeavesNameNothing(t *testing.T) {
	for _, secret := range []string{secretA, derive(t, secretA, time.Time{}, "lock a")} {
		pair, err := source(t, SecretConfig{Secret: secret}).ClientTLS().GetClientCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		leaf := pair.Leaf
		if n := leaf.Subject.Names; len(n) != 0 || strings.Contains(string(leaf.Raw), "orders") ||
			len(leaf.DNSNames) != 1 || leaf.DNSNames[0] != leafName(publicA(), "orders") {
			t.Errorf("a stranger reads %v, %v", n, leaf.DNSNames)
		}
	}
}

// A stranger knows the words that people use as labels, and reads everything that a handshake shows
// before it is refused. From these it must not be able to tell which word is the label.
func TestALabelIsNotGuessed(t *testing.T) {
	seen := map[string]bool{}
	for _, secret := range []string{secretA, secretB} {
		server := source(t, SecretConfig{Secret: secret})
		a, err := newAuthority(secret, "orders")
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []*Source{server, source(t, SecretConfig{Secret: derive(t, secret, time.Time{}, "lock a")})} {
			pair, err := shown.ClientTLS().GetClientCertificate(nil)
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(pair.Leaf.DNSNames[0], "*.")
			if !strings.HasSuffix(shown.ClientTLS().ServerName, "."+name) {
				t.Errorf("a dialer asks for %q at an instance with the name %q", shown.ClientTLS().ServerName, name)
			}
			for _, der := range pair.Certificate {
				if bytes.Contains(der, a.public()) || bytes.Contains(der, []byte("orders")) {
					t.Error("a certificate shows the key of its authority, with which labels can be tried out")
				}
			}
			seen[name] = true
		}
	}
	if len(seen) != 2 {
		t.Errorf("two clusters with one label and different secrets have the names %v", seen)
	}
}

// Each derived secret is checked without a connection. One that was made with a made-up authority
// is refused before its signatures are verified.
func TestDerivedWithoutAConnection(t *testing.T) {
	s := source(t, SecretConfig{Secret: secretA, Old: []string{secretB}})
	for _, secret := range []string{secretA, secretB} {
		for words, tier := range map[string]Tier{"lock a": Guest, "member": Member} {
			p, err := s.Derived("\n" + derive(t, secret, time.Time{}, words) + " ")
			if err != nil || p.Tier != tier || p.Capability == nil || !p.NotAfter.Equal(never()) {
				t.Errorf("%s: %+v, %v", words, p, err)
			}
		}
	}
	good := derive(t, secretA, time.Time{}, "lock a")
	payload, err := unpackDerived(good)
	if err != nil {
		t.Fatal(err)
	}
	spoilt := slices.Clone(payload) // names our authority, but another has signed
	foreign, err := unpackDerived(derive(t, secretC, time.Time{}, "lock a"))
	if err != nil {
		t.Fatal(err)
	}
	copy(spoilt[ed25519.PublicKeySize:], foreign[ed25519.PublicKeySize:])
	glue := func(payload []byte) string {
		return derivedPrefix + base64.RawURLEncoding.EncodeToString(append(slices.Clone(payload),
			checksum(derivedPrefix, payload)...))
	}
	other, err := DeriveSecret(secretA, "billing", text(t, time.Time{}, "lock a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ secret, want string }{
		"another secret":    {derive(t, secretC, time.Time{}, "lock a"), "another secret"},
		"another cluster":   {other, "for another cluster"},
		"a borrowed name":   {glue(spoilt[:len(foreign)]), "another cluster"},
		"not a certificate": {glue(append(slices.Clone(foreign[:derivedKeys]), "x"...)), "another secret"},
		"ended":             {derive(t, secretA, noon.Add(-time.Minute), "lock a"), "ended at"},
		"a root secret":     {secretA, "checksum"},
		"nothing":           {"", "checksum"},
	} {
		if p, err := s.Derived(c.secret); err == nil || !strings.Contains(err.Error(), c.want) ||
			p.Capability != nil {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}
