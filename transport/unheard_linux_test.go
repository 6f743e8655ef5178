package transport

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
)

type recorded struct {
	net.Listener
	accepted func(*net.TCPConn)
}

func (l recorded) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		l.accepted(tcp)
	}
	return conn, err
}

// A link ends when the other machine has not acknowledged the link's bytes for three seconds. On
// every connection both sides resend lost packets at equal intervals.
func TestUnheardConnectionsEnd(t *testing.T) {
	var mu sync.Mutex
	var dialed, accepted []*net.TCPConn
	start := func(n int) *node {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		dial := func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			if tcp, ok := conn.(*net.TCPConn); ok {
				mu.Lock()
				dialed = append(dialed, tcp)
				mu.Unlock()
			}
			return conn, err
		}
		note := func(tcp *net.TCPConn) {
			mu.Lock()
			defer mu.Unlock()
			accepted = append(accepted, tcp)
		}
		return startNode(t, recorded{ln, note}, dial, instance(n, ln.Addr().String()))
	}
	a, b := start(1), start(2)
	a.send(b, "x")
	eventually(t, "nothing arrives",
		func() bool { text, _ := commands(b.seen(), a.identity.Instance); return text == "x" })
	mu.Lock()
	defer mu.Unlock()
	option := func(conn *net.TCPConn, name int) (value int, err error) {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			value, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP,
				name)
		}); err != nil {
			t.Fatal(err)
		}
		return value, err
	}
	for _, conn := range dialed {
		if got, err := option(conn, tcpUserTimeout); err != nil || got != int(unheardFor.Milliseconds()) {
			t.Errorf("what is not acknowledged waits for %d ms (%v), want %v", got, err, unheardFor)
		}
	}
	for side, conns := range map[string][]*net.TCPConn{"dialer": dialed, "acceptor": accepted} {
		if len(conns) == 0 {
			t.Errorf("%s: no connection was seen", side)
		}
		for _, conn := range conns {
			if thin, err := option(conn, tcpThinLinearTimeouts); err != nil || thin != 1 {
				t.Errorf("%s: the pauses between tries are equal: %d (%v), want 1", side, thin, err)
			}
		}
	}
}
