package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// A connection of every source may go on until the time that Peer returns, and not a moment longer,
// on both sides.
func TestEachConnectionEndsWithItsCertificate(t *testing.T) {
	ca, clock := newSigner(t, "ca"), &wall{now: noon}
	// The certificates differ in their ends, because the shortest one of a chain counts.
	pair := ca.pair(t, func(c *x509.Certificate) { c.NotAfter = noon.Add(37 * time.Minute) })
	f := newFolder(t)
	f.clock = clock
	f.cfg.Now, f.cfg.Names = clock.Now, Names{Peers: []string{"node.test"}}
	f.writePair(pair)
	f.writeAuthorities(ca)
	check := func(tls.ConnectionState) error { return nil }
	user := func(list Names, check func(tls.ConnectionState) error) *Source {
		config := given(t, ca)
		config.Certificates, config.Time, config.VerifyConnection = []tls.Certificate{pair}, clock.Now, check
		s, err := FromTLS(config, list)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	listed := Names{Peers: []string{"node.test"}}
	root := source(t, SecretConfig{Now: clock.Now})
	derived := source(t, SecretConfig{Now: clock.Now, Secret: derive(t, secretA, noon.Add(3*time.Hour), "lock a")})
	for name, c := range map[string]struct{ server, client *Source }{
		"a secret": {root, root}, "a derived secret": {root, derived}, "files": {f.open(), f.open()},
		"TLS with names": {user(listed, nil), user(listed, nil)}, "TLS with a check": {user(Names{}, check),
			user(Names{}, check)},
		"TLS with both": {user(listed, check), user(listed, check)},
	} {
		clock.set(noon)
		var inbound tls.ConnectionState
		s, cl, outbound := handshake(t, watched(c.server.ServerTLS(), &inbound), c.client.ClientTLS())
		if s != nil || cl != nil {
			t.Fatalf("%s: the server says %v, the client %v", name, s, cl)
		}
		for side, at := range map[string]struct {
			of    *Source
			state tls.ConnectionState
		}{"accepted": {c.server, inbound}, "dialed": {c.client, outbound}} {
			clock.set(noon)
			p, err := at.of.Peer(at.state)
			if err != nil || !p.NotAfter.After(noon) {
				t.Fatalf("%s, %s: %+v, %v", name, side, p, err)
			}
			for _, after := range []time.Duration{-time.Second, 0, time.Second, time.Hour} {
				clock.set(p.NotAfter.Add(after))
				if err := at.of.Recheck(at.state); (err == nil) != (after <= 0) {
					t.Errorf("%s, %s, %v after the end: %v", name, side, after, err)
				}
			}
		}
	}
}
