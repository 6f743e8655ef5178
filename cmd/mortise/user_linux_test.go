package main

import (
	"context"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The programs of one user are one client, on however many connections. Programs that connect to a
// loopback address are one client, too.
func TestClientsWithoutTokens(t *testing.T) {
	d := &door{}
	client := func(l net.Listener) (c any) {
		t.Helper()
		dialed, err := net.Dial(l.Addr().Network(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer dialed.Close()
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		r := httptest.NewRequestWithContext(withConn(context.Background(), conn), "GET", "/", nil)
		return d.client(r)
	}
	local, err := listenUnix(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	address, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	for l, want := range map[net.Listener]any{local: localUser(os.Getuid()), address: anyone{}} {
		g := newGate(l, maxConns)
		defer g.Close()
		if one, two := client(g), client(g); one != want || two != want {
			t.Errorf("%v: the clients are %v and %v, want %v", l.Addr(), one, two, want)
		}
	}
}

func TestConnectionsLeaveFilesToTheInstance(t *testing.T) {
	if n := connLimit(); n < 16 || n > maxConns {
		t.Errorf("%d connections", n)
	}
}

// An agent replaces neither another file nor the socket of another process.
func TestASocketOfAnotherIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "exists and is not a socket") {
		t.Error(err)
	}
	_ = os.Remove(path)
	first, err := listenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := listenUnix(path); err == nil || !strings.Contains(err.Error(), "another process listens on") {
		t.Error(err)
	}
}
