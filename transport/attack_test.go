package transport

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// forger is a process that violates the protocol. It has the private key of one instance.
type forger struct {
	*Port
	key nodeid.Key
}

func forge(n int) *forger {
	self := instance(n, "forger:1")
	f := &forger{Port: &Port{base: base{config: Config{Cluster: "test", Self: self}.withDefaults()}}, key: self.Key}
	f.table.base, f.pool.base = &f.base, &f.base
	f.dials = newDials(f.config.Random, func() bool { return false })
	f.Port.config.Random(f.boot[:])
	f.Port.self.Store(&self)
	return f
}

// says returns an encoded hello of the forger, modified by the function change.
func (f *forger) says(change func(*wire.Hello)) []byte {
	h := &wire.Hello{
		Version: protocol, Cluster: f.config.Cluster, Key: f.key.Public(), Kind: wire.Hello_LINK, Group: 7, Raft: 109,
		Addr: "forger:1", Number: 1, Life: f.config.Life, Boot: f.boot[:],
	}
	change(h)
	b, err := proto.Marshal(h)
	if err != nil {
		panic(err)
	}
	return b
}

type heard struct {
	*wire.Greeting
	binding []byte
}

// accept answers every dialer with the greeting that answer returns, without checks.
func (f *forger) accept(conn net.Conn, answer func(heard) *wire.Greeting) {
	defer conn.Close()
	var secure *tls.ConnectionState
	if t, ok := conn.(*tls.Conn); ok {
		if t.Handshake() != nil {
			return
		}
		state := t.ConnectionState()
		secure = &state
	}
	s := newStream(&f.base, conn, secure, func() { conn.Close() })
	binding, err := s.bind(acceptor, secure)
	if err != nil {
		return
	}
	g, err := s.hearGreeting()
	if err != nil {
		return
	}
	if s.greet(answer(heard{g, binding})) == nil {
		drain(conn)
	}
}

// answer returns the greeting of a correct acceptor, whatever instance the dialer intended.
func (f *forger) answer(to heard) *wire.Greeting {
	return greeting(f.key, acceptor, to.binding, to.Hello, f.says(func(*wire.Hello) {}))
}

// dial opens a connection to addr, with TLS if the forger is configured for it, and exchanges only
// the nonces.
func (f *forger) dial(w *world, addr string) (s *stream, binding []byte) {
	w.t.Helper()
	f.config.Dial = w.net.Dialer("forger")
	raw, err := f.open(context.Background(), addr)
	if err == nil {
		s, err = f.secure(context.Background(), raw, addr)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.kill)
	if binding, err = s.bind(dialer, s.secure); err != nil {
		w.t.Fatal(err)
	}
	return s, binding
}

func (s *stream) greets(t *testing.T, g *wire.Greeting) *wire.Greeting {
	t.Helper()
	if err := s.greet(g); err != nil {
		t.Fatal(err)
	}
	answer, err := s.hearGreeting()
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func (f *forger) listen(w *world, addr string, answer func(heard) *wire.Greeting) {
	w.serve(addr, func(conn net.Conn) {
		if f.config.TLS != nil {
			config := f.config.TLS.ServerTLS()
			config.NextProtos = []string{"h2"}
			conn = tls.Server(conn, config)
		}
		f.accept(conn, answer)
	})
}

// secured runs a test in plain text, and with TLS. With TLS all processes share one certificate.
func secured(t *testing.T, test func(t *testing.T, w *world, use func(*Config), forge func(n int) *forger)) {
	for _, name := range []string{"plain", "TLS"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				shared := Config{}
				if name == "TLS" {
					newAuthority(t).use(&shared)
				}
				test(t, w, func(c *Config) { c.TLS = shared.TLS }, func(n int) *forger {
					f := forge(n)
					f.config.TLS = shared.TLS
					f.notices = newNotices(slog.New(slog.DiscardHandler))
					return f
				})
			})
		})
	}
}

func (n *node) warnings(texts ...string) int { return n.lines("WARN", texts...) }

func (n *node) lines(level string, texts ...string) (count int) {
	for line := range strings.Lines(n.log.String()) {
		all := strings.Contains(line, "level="+level)
		for _, text := range texts {
			all = all && strings.Contains(line, text)
		}
		if all {
			count++
		}
	}
	return count
}

// sendTo makes a node dial a peer. A dial that fails immediately may end before the frame is
// queued.
func (n *node) sendTo(to nodeid.Endpoint) {
	n.t.Helper()
	// nolint:errorlint // a pause wraps it
	if err := n.Send(to, Frame{Commands: []byte("for " + to.Addr)}); err != nil && err != ErrNoLink {
		n.t.Fatal(err)
	}
}
