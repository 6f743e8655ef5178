package transport

import (
	"context"
	"net"
	"sync"
	"syscall"
	"testing"
)

// A connection whose bytes the other machine does not acknowledge is ended by the kernel after three
// seconds, and not after a quarter of an hour.
func TestUnheardConnectionsEnd(t *testing.T) {
	var mu sync.Mutex
	var dialed []*net.TCPConn
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
		return startNode(t, ln, dial, instance(n, ln.Addr().String()))
	}
	a, b := start(1), start(2)
	a.send(b, "x")
	eventually(t, "nothing arrives", func() bool { text, _ := commands(b.seen(), a.identity.Instance); return text == "x" })
	mu.Lock()
	defer mu.Unlock()
	for _, conn := range dialed {
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		if err := raw.Control(func(fd uintptr) {
			got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout)
			if want := int(unheardFor.Milliseconds()); err != nil || got != want {
				t.Errorf("what is not acknowledged waits for %d ms (%v), want %d", got, err, want)
			}
			if thin, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpThinLinearTimeouts); err != nil || thin != 1 {
				t.Errorf("the pauses between tries are equal: %d (%v), want 1", thin, err)
			}
		}); err != nil {
			t.Error(err)
		}
	}
	if len(dialed) == 0 {
		t.Error("no connection was seen")
	}
}
