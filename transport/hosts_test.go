package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

type fromHost struct {
	net.Conn
	addr string
}

func (c fromHost) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(c.addr), Port: 1} }

func newHostTurns() *turns { return &turns{atOnce: 1, limit: 5 * time.Second, hosts: newHosts()} }

func arrive(all *turns, addr string, n int) (waits []time.Duration) {
	for range n {
		t, err := all.arrive(fromHost{addr: addr}.RemoteAddr(), make(chan struct{}))
		switch {
		case err != nil:
			waits = append(waits, -1)
		case t.due.IsZero():
			waits = append(waits, 0)
		default:
			waits = append(waits, time.Until(t.due))
		}
	}
	return waits
}

// No host may open more connections than its rate allows, whatever the connections prove or do not
// prove. What is refused counts more. Hosts of voters, and other hosts, are not affected.
func TestConnectionsOfAHostArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newHostTurns()
		waits := arrive(all, "192.0.2.1", hostBurst+200)
		for n, wait := range waits {
			want := max(0, time.Duration(n+1-hostBurst)*hostEvery)
			if want > hostWait {
				want = -1
			}
			if wait != want {
				t.Fatalf("connection %d waits %v, and should wait %v", n, wait, want)
			}
		}
		if w := arrive(all, "192.0.2.2", 1); w[0] != 0 {
			t.Errorf("another host waits %v", w[0])
		}
		all.prefer([]string{"192.0.2.1:7947"})
		if w := arrive(all, "192.0.2.1", 1); w[0] != 0 {
			t.Errorf("the host of a voter waits %v", w[0])
		}
		all.prefer(nil)
		time.Sleep(10 * time.Second)
		if w := arrive(all, "192.0.2.1", 1000); w[0] != 0 || w[700] == 0 {
			t.Errorf("after ten seconds the first waits %v, the 700th %v", w[0], w[700])
		}
	})
}

func TestRefusedConnectionsCountMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newHostTurns()
		for n := range hostBurst / refusedCost {
			turn, err := all.arrive(fromHost{addr: "2001:db8::1"}.RemoteAddr(), make(chan struct{}))
			if err != nil || !turn.due.IsZero() {
				t.Fatalf("connection %d waits: %v", n, err)
			}
			turn.charge(refusedCost - 1)
		}
		if w := arrive(all, "2001:db8::2", 1); w[0] != hostEvery { // another address of the same machine
			t.Errorf("after %d refused connections the next one waits %v", hostBurst/refusedCost, w[0])
		}
		if w := arrive(all, "2001:db8:0:1::1", 1); w[0] != 0 {
			t.Errorf("another network waits %v", w[0])
		}
		all.prefer([]string{"[2001:db8:0:1::1]:7947"})
		for range hostBurst {
			turn, _ := all.arrive(fromHost{addr: "2001:db8:0:1::1"}.RemoteAddr(), make(chan struct{}))
			turn.charge(refusedCost - 1)
		}
		if all.prefer(nil); arrive(all, "2001:db8:0:1::1", 1)[0] != 0 {
			t.Error("what a voter's host did is counted")
		}
	})
}

// A handshake that is not due holds no turn, can be displaced, and ends with its connection.
func TestAPacedHandshakeHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newHostTurns()
		busy := func() int {
			all.mu.Lock()
			defer all.mu.Unlock()
			return all.busy
		}
		arrive(all, "192.0.2.1", hostBurst)
		c, gone := fromHost{addr: "192.0.2.1"}, make(chan struct{})
		paced, err := all.arrive(c.RemoteAddr(), gone)
		if err != nil || paced.due.IsZero() {
			t.Fatalf("due at %v: %v", paced.due, err)
		}
		began, result := time.Now(), make(chan error, 1)
		go func() { result <- paced.take() }()
		synctest.Wait()
		if busy() != 0 || paced.busy.Load() {
			t.Error("a handshake that is not due holds a turn, or is never displaced")
		}
		if err := <-result; err != nil || time.Since(began) != hostEvery || busy() != 1 {
			t.Errorf("after %v: %v, %d turns are held", time.Since(began), err, busy())
		}
		paced.end()
		closed, err := all.arrive(c.RemoteAddr(), gone)
		if err != nil {
			t.Fatal(err)
		}
		go func() { result <- closed.take() }()
		synctest.Wait()
		close(gone)
		if err := <-result; !errors.Is(err, errPaced) || busy() != 0 {
			t.Errorf("%v, %d turns are held", err, busy())
		}
	})
}

func TestHostsByAddress(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "::ffff:192.0.2.1", "a": "a",
		"2001:db8::1": "2001:db8::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := hostName(addr); got != want {
			t.Errorf("hostName(%q) = %q", addr, got)
		}
	}
}

// Each way in which a handshake fails after the dialer has sent something must be counted, with and
// without TLS. A host that does nothing else is then closed without a handshake, and instances of
// other hosts are linked.
func TestEveryRefusalIsCounted(t *testing.T) {
	secured(t, func(t *testing.T, w *world, use func(*Config), _ func(int) *forger) {
		a, b := w.node("a", 1, use), w.node("b", 2, use)
		ways := map[string]func(conn net.Conn){
			"garbage":     func(conn net.Conn) { _, _ = io.WriteString(conn, "GET / HTTP/1.1\r\n\r\n") },
			"broken off":  func(conn net.Conn) { _, _ = conn.Write([]byte(linkPreface[:3])); conn.Close() },
			"no greeting": func(conn net.Conn) { _, _ = io.WriteString(conn, linkPreface+fmt.Sprintf("%044d", 0)) },
		}
		for name, way := range ways {
			a.listener.turns.hosts = newHosts()
			for range hostBurst/refusedCost + 200 {
				conn := w.raw("a:1")
				way(conn)
				synctest.Wait()
				conn.Close()
			}
			synctest.Wait()
			conn := w.raw("a:1")
			synctest.Wait()
			_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: the next connection is not closed: %v", name, err)
			}
			conn.Close()
		}
		b.send(a, "x")
		a.wantCommands("from another host", b, "x")
	})
}
