package credentials

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"
)

// TestAPeerWithSeveralChains checks that all chains of a peer must say the same. A peer may send
// several certificates of authorities, and each verified chain then has its own rights.
func TestAPeerWithSeveralChains(t *testing.T) {
	server := source(t, SecretConfig{})
	chainOf := func(secret string) []*x509.Certificate {
		t.Helper()
		var seen tls.ConnectionState
		client := source(t, SecretConfig{Secret: secret})
		s, c := meet(t, watched(server.ServerTLS(), &seen), client.ClientTLS())
		if s != nil || c != nil || len(seen.VerifiedChains) != 1 {
			t.Fatal(s, c, len(seen.VerifiedChains))
		}
		return seen.VerifiedChains[0]
	}
	root, forA := chainOf(secretA), chainOf(derive(t, secretA, time.Time{}, "lock a"))
	longer := chainOf(derive(t, secretA, noon.Add(time.Hour), "lock a"))
	alike, forB := chainOf(derive(t, secretA, time.Time{}, "lock a")), chainOf(derive(t, secretA, time.Time{}, "lock b"))
	member := chainOf(derive(t, secretA, time.Time{}, "member"))
	both := chainOf(derive(t, secretA, time.Time{}, "member", "force a"))
	for name, c := range map[string]struct {
		chains [][]*x509.Certificate
		tier   Tier
		err    error
	}{
		"one":                            {[][]*x509.Certificate{root}, Root, nil},
		"two of the root secret":         {[][]*x509.Certificate{root, root}, Root, nil},
		"two with the same text":         {[][]*x509.Certificate{forA, alike}, Guest, nil},
		"a guest and the root secret":    {[][]*x509.Certificate{forA, root}, 0, errChain},
		"the root secret and a guest":    {[][]*x509.Certificate{root, forA}, 0, errChain},
		"a guest and a member":           {[][]*x509.Certificate{forA, member}, 0, errChain},
		"two guests":                     {[][]*x509.Certificate{forA, forB}, 0, errChain},
		"two guests until other times":   {[][]*x509.Certificate{forA, longer}, 0, errChain},
		"two members":                    {[][]*x509.Certificate{member, both}, 0, errChain},
		"the third differs":              {[][]*x509.Certificate{forA, alike, forB}, 0, errChain},
		"the second is too short":        {[][]*x509.Certificate{forA, forA[2:]}, 0, errChain},
		"the first is too short":         {[][]*x509.Certificate{forA[2:], forA}, 0, errChain},
		"the second has no text":         {[][]*x509.Certificate{forA, {forA[0], root[1], root[1]}}, 0, errChain},
		"the first has no text":          {[][]*x509.Certificate{{forA[0], root[1], root[1]}, forA}, 0, errText},
		"none, and no certificate added": {nil, 0, errUnverified},
	} {
		state := tls.ConnectionState{VerifiedChains: c.chains}
		if len(c.chains) > 0 {
			state.PeerCertificates = root[:1] // the name is the same in all leaves
		}
		p, err := server.Peer(state)
		if !errors.Is(err, c.err) || p.Tier != c.tier {
			t.Errorf("%s: %s, %v, want %s, %v", name, p.Tier, err, c.tier, c.err)
		}
	}
}

// TestOnlyVerifiedCertificatesMakeAPeer gives each source a certificate of a stranger that no
// handshake has verified. Its names are right.
func TestOnlyVerifiedCertificatesMakeAPeer(t *testing.T) {
	ca, stranger := newSigner(t, "ca"), newSigner(t, "ca")
	pair := stranger.pair(t)
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Leaf}}
	own := given(t, ca)
	own.Time, own.VerifyConnection = at(noon), func(tls.ConnectionState) error { return nil }
	checked, err := FromTLS(own, Names{})
	if err != nil {
		t.Fatal(err)
	}
	listed, err := FromTLS(own, Names{Peers: []string{"node.test"}})
	if err != nil {
		t.Fatal(err)
	}
	f := newFolder(t)
	f.cfg.Names = Names{Peers: []string{"node.test"}}
	f.writePair(ca.pair(t))
	f.writeAuthorities(ca)
	for name, s := range map[string]*Source{"a check": checked, "a list": listed, "files": f.open(),
		"a secret": source(t, SecretConfig{})} {
		if p, err := s.Peer(state); err == nil {
			t.Errorf("%s: a stranger is %+v", name, p)
		}
		if err := s.Recheck(state); err == nil {
			t.Errorf("%s: a stranger may go on", name)
		}
		if config := s.ServerTLS(); config.VerifyConnection(state) == nil && name != "a check" {
			t.Errorf("%s: a stranger may connect", name)
		}
	}
	state.PeerCertificates = []*x509.Certificate{ca.pair(t).Leaf} // an instance of the same authority
	if p, err := listed.Peer(state); err != nil || p.Tier != Root || p.Name != "node.test" || !p.NotAfter.Equal(
		noon.Add(time.Hour)) {
		t.Errorf("an instance is %+v, %v", p, err)
	}
	if p, err := checked.Peer(state); !errors.Is(err, errUnverified) {
		t.Errorf("without a handshake, the user's check decides about %+v, %v", p, err)
	}
}

// TestStretchedSecretsAreForgottenInOrder checks that the last results are kept, as many as the
// limit says, and no others.
func TestStretchedSecretsAreForgottenInOrder(t *testing.T) {
	var s stretcher
	key := func(i int) (k [sha256.Size]byte) {
		binary.LittleEndian.PutUint64(k[:], uint64(i))
		return k
	}
	made := map[*stretching]bool{}
	for i := range 3 * stretchKept {
		e := s.entry(key(i))
		if made[e] {
			t.Fatalf("secret %d has the result of another one", i)
		}
		made[e] = true
		var want [][sha256.Size]byte
		for j := max(0, i-stretchKept+1); j <= i; j++ {
			want = append(want, key(j))
			if again := s.entry(key(j)); again == nil || s.kept[key(j)] != again || !made[again] {
				t.Fatalf("after secret %d, secret %d is stretched again", i, j)
			}
		}
		if !slices.Equal(s.order, want) || len(s.kept) != len(want) {
			t.Fatalf("after secret %d: %d results, in the order of %d", i, len(s.kept), len(s.order))
		}
	}
}
