package credentials

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

// Builds with different keys would refuse each other. The test also compares the certificate, to
// detect changes in new versions of Go. A change of the certificate alone would do no harm, because
// peers never exchange it.
func TestAuthorityIsPinned(t *testing.T) {
	a, err := newAuthority(secretA, "orders")
	if err != nil {
		t.Fatal(err)
	}
	const wantKey = "14969bfb8ea4a8343c74a08bf57559ece587b6ac6de79961964fe90bab20d5e7"
	if got := hex.EncodeToString(a.key.Public().(ed25519.PublicKey)); got != wantKey {
		t.Errorf("the key is %s, want %s: instances of an earlier build would be shut out", got, wantKey)
	}
	const wantSubject = "302d312b3029060355040313226d6f727469736520617574686f726974792063623162653366323939316564333362"
	if got := hex.EncodeToString(a.cert.RawSubject); got != wantSubject {
		t.Errorf("the subject is %s, want %s: instances of an earlier build would be shut out", got, wantSubject)
	}
	const wantFingerprint = "29ecc322e75fb4a11e28525488470f1516d58c8efaab6c33f34ab735a329969c"
	if got := sha256.Sum256(a.cert.Raw); hex.EncodeToString(got[:]) != wantFingerprint {
		t.Errorf("the certificate's fingerprint is %x, want %s", got, wantFingerprint)
	}
	if got, want := zone(a.public(), "orders"), "36d3b2d88d2583458e648d3cc9b70558.mortise.internal"; got != want {
		t.Errorf("the server name is %s, want %s: instances of an earlier build would be shut out", got, want)
	}
}

func TestStretchedAuthorityIsPinned(t *testing.T) {
	a, err := newAuthority(opensslHex, "orders")
	if err != nil {
		t.Fatal(err)
	}
	const wantKey = "42e93baef85a55170347f771a17abc77da50e439b84d9f24a749b25bc866a039"
	if got := hex.EncodeToString(a.key.Public().(ed25519.PublicKey)); got != wantKey {
		t.Errorf("the key is %s, want %s: instances of an earlier build would be shut out", got, wantKey)
	}
}

func TestAuthorityDependsOnSecretAndClusterOnly(t *testing.T) {
	seen := map[string]string{}
	for _, c := range [][2]string{{secretA, "orders"}, {secretB, "orders"}, {secretA, "billing"},
		{secretA, "orders\x00"}, {secretA, "ORDERS"}} {
		a, err := newAuthority(c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		again, _ := newAuthority(c[0], c[1])
		if !bytes.Equal(a.cert.Raw, again.cert.Raw) {
			t.Errorf("%q: two nodes derive two authorities", c)
		}
		if other, dup := seen[string(a.key)]; dup {
			t.Errorf("%q and %q have one key", c, other)
		}
		seen[string(a.key)] = c[0] + "/" + c[1]
		name := leafName(a.public(), c[1])
		if len(name) > 63 || strings.ToLower(name) != name {
			t.Errorf("%q is not a valid DNS name", name)
		}
	}
}

// Go's default key identifier has changed once, and a setting on a single node restores the old
// default.
func TestAuthorityDoesNotDependOnGo(t *testing.T) {
	a, err := newAuthority(secretA, "orders")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GODEBUG", "x509sha256skid=0")
	if again, err := newAuthority(secretA, "orders"); err != nil || !bytes.Equal(a.cert.Raw, again.cert.Raw) {
		t.Errorf("another setting of Go gives another authority (%v)", err)
	}
}

func TestEveryProcessHasItsOwnKey(t *testing.T) {
	a, b := source(t, SecretConfig{}), source(t, SecretConfig{})
	ca, _ := a.ServerTLS().GetCertificate(nil)
	cb, _ := b.ServerTLS().GetCertificate(nil)
	if ca.PrivateKey.(ed25519.PrivateKey).Equal(cb.PrivateKey) || ca.Leaf.SerialNumber.Cmp(cb.Leaf.SerialNumber) == 0 {
		t.Error("two processes have one key, or one serial number")
	}
	fill := func(b []byte) {
		for i := range b {
			b[i] = 7
		}
	}
	c1, _ := source(t, SecretConfig{Random: fill}).ClientTLS().GetClientCertificate(nil)
	c2, _ := source(t, SecretConfig{Random: fill}).ClientTLS().GetClientCertificate(nil)
	if !bytes.Equal(c1.Certificate[0], c2.Certificate[0]) {
		t.Error("with Random and Now given a certificate is repeatable, for simulations")
	}
	if c1.Leaf.IsCA || len(c1.Leaf.DNSNames) != 1 {
		t.Errorf("a member's certificate is an authority, or has names %q", c1.Leaf.DNSNames)
	}
}
