package e2e

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// TestANodeOnItsOwnListensNowhere checks that a node on its own opens no port. Otherwise every user
// of the machine could take its locks.
func TestANodeOnItsOwnListensNowhere(t *testing.T) {
	e, listened := realWorld(), 0
	e.Listen = func(address string) (net.Listener, error) {
		listened++
		return net.Listen("tcp", address)
	}
	for name, c := range map[string]mortise.Config{"in memory": {}, "with Dir": {Dir: t.TempDir() + "/d"},
		"with Secret": {Secret: secretA}} {
		t.Run(name, func(t *testing.T) {
			listened, c.Grace = 0, -1
			n, err := start(t.Context(), c, e)
			if err != nil {
				t.Fatal(err)
			}
			defer n.Close()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			l, err := n.Lock(ctx, "k")
			if err != nil {
				t.Fatal(err)
			}
			if info, err := n.Peek(ctx, "k"); err != nil || info.Held != 1 {
				t.Errorf("%+v, %v", info, err)
			}
			if err := l.Unlock(ctx); err != nil {
				t.Error(err)
			}
			s := n.Status()
			if listened != 0 || s.Address != "" {
				t.Errorf("it listens %d times, and says that it does at %q", listened, s.Address)
			}
			for _, m := range s.Voters {
				if m.Address != "" {
					t.Errorf("%+v", m)
				}
			}
			if err := n.Leave(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	n, err := start(t.Context(), mortise.Config{Bind: "127.0.0.1:0", Grace: -1}, e)
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	conn, err := net.Dial("tcp", n.Status().Address)
	if err != nil || listened != 1 {
		t.Fatalf("with Bind it listens %d times: %v", listened, err)
	}
	conn.Close()
}
