package transport

import (
	"context"
	"crypto/tls"
	"net"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// forger is a process that speaks our protocol without keeping to it. It has the key of one instance.
type forger struct {
	*Port
	key nodeid.Key
}

func forge(n int) *forger {
	self := instance(n, "forger:1")
	f := &forger{Port: &Port{config: Config{Cluster: "test", Self: self}.withDefaults()}, key: self.Key}
	f.Port.config.Random(f.boot[:])
	f.Port.self.Store(&self)
	return f
}

// says returns an encoded hello of the forger, changed.
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

// accept serves a connection until its end: it answers any dialer, without looking, with what answer returns.
func (f *forger) accept(conn net.Conn, answer func(*introduction) *wire.Greeting) {
	defer conn.Close()
	var secure *tls.ConnectionState
	if t, ok := conn.(*tls.Conn); ok {
		if t.Handshake() != nil {
			return
		}
		state := t.ConnectionState()
		secure = &state
	}
	s := newStream(f.Port, conn, secure, func() { conn.Close() })
	binding, err := s.bind(acceptor, secure)
	if err != nil {
		return
	}
	g, err := s.hearGreeting()
	if err != nil {
		return
	}
	if s.greet(answer(&introduction{raw: g.Hello, binding: binding})) == nil {
		drain(conn)
	}
}

// answer is what an honest acceptor answers, but for any instance.
func (f *forger) answer(who *introduction) *wire.Greeting {
	return greeting(f.key, acceptor, who.binding, who.raw, f.says(func(*wire.Hello) {}))
}

// sendTo makes a node dial a peer for something to send.
func (n *node) sendTo(to Peer) {
	n.t.Helper()
	if err := n.Send(to, Frame{Commands: []byte("for " + to.Addr)}); err != nil {
		n.t.Fatal(err)
	}
}

var _ = context.Background
var _ testing.TB
