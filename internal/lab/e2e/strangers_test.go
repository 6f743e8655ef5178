package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

func TestPortInUseIsAClearError(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		taken, err := f.net.Listen(address(0))
		if err != nil {
			t.Fatal(err)
		}
		defer taken.Close()
		_, err = start(t.Context(), f.config(0, 1), f.world(0))
		wantIs(t, err, syscall.EADDRINUSE)
		if !strings.Contains(err.Error(), "Config.Bind") || !strings.Contains(err.Error(), address(0)) {
			t.Errorf("the error does not name the field and the address: %v", err)
		}
	})
}

func TestSoloNodeRefusesOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		c := f.config(0, 1)
		c.Join, c.Replicas = nil, 0
		f.start(0, c)
		f.ready()
		f.start(1, f.config(1, 2))
		time.Sleep(20 * time.Second)
		if s := f.nodes[1].Status(); s.Group != "" || !strings.Contains(s.Waiting, "Join") {
			t.Errorf("a second instance must be refused with the way out:\n%v", s)
		}
		unlock(t, f.lock(0, "k"))
	})
}

// TestSilentAddressBlocksBirthAndIsNamed checks that an address that never answers prevents the
// founding, because it may belong to an instance of a group.
func TestSilentAddressBlocksBirthAndIsNamed(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		silent, err := f.net.Listen("10.0.0.9:7947") // accepts connections and sends nothing
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			c := f.config(i, 3)
			c.Join = append(c.Join, "10.0.0.9:7947")
			f.start(i, c)
		}
		time.Sleep(30 * time.Second)
		for i, n := range f.nodes {
			if s := n.Status(); s.Group != "" || !strings.Contains(s.Waiting, "10.0.0.9:7947") {
				t.Errorf("node %d does not say that it waits for the silent address:\n%v", i, s)
			}
		}
		_ = silent.Close() // the address now refuses connections, and the founding continues
		f.ready()
	})
}

// TestForeignAddressDoesNotMatter checks that an address in Join does not affect the founding if
// the program at that address is no instance of this cluster.
func TestForeignAddressDoesNotMatter(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		foreign, err := f.net.Listen("10.0.0.9:7947")
		if err != nil {
			t.Fatal(err)
		}
		defer foreign.Close()
		go answerAll(foreign, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		other := f.config(3, 1)
		other.Cluster = "another cluster"
		f.start(3, other)
		for i := range 3 {
			c := f.config(i, 3)
			c.Join = append(c.Join, "10.0.0.9:7947", address(3))
			f.start(i, c)
		}
		f.ready()
		if f.nodes[3].Status().Group == f.nodes[0].Status().Group {
			t.Error("two clusters have become one group")
		}
		if n := len(f.nodes[0].Cluster().Members()); n != 3 {
			t.Errorf("gossip sees %d members, want 3", n)
		}
	})
}

func answerAll(l net.Listener, text string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			_, _ = io.WriteString(conn, text)
			_ = conn.Close()
		}()
	}
}

func TestGarbageOnThePortHarmsNoInstance(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		mine := f.lock(0, "k")
		dial := f.net.Dialer("10.0.0.66")
		for i := range 3 {
			for _, text := range []string{
				"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
				strings.Repeat("\xff", 100_000),
				"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\x00", 1000), "",
			} {
				conn, err := dial(t.Context(), address(i))
				if err != nil {
					t.Fatal(err)
				}
				_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
				_, _ = io.WriteString(conn, text)
				_, _ = io.Copy(io.Discard, conn)
				_ = conn.Close()
			}
		}
		time.Sleep(time.Minute)
		if err := mine.Err(); err != nil {
			t.Errorf("garbage on the port ended a lock: %v", err)
		}
		unlock(t, mine)
		f.nothingLeft()
	})
}

// TestForeignGroupDoesNotMix founds two groups that learn each other's addresses later.
func TestForeignGroupDoesNotMix(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := newFleet(t)
		f.unjudged = true // both groups may hold the same key
		for i := range 2 {
			f.start(i, f.config(i, 2))
		}
		f.ready()
		// The second group: nodes 2 and 3, which learn the addresses of the first group only later.
		for i := 2; i < 4; i++ {
			c := f.config(i, 2)
			c.Join = []string{address(2), address(3)}
			f.start(i, c)
		}
		f.ready()
		mine, yours := f.lock(0, "k"), f.lock(2, "k")
		probe := f.config(4, 2)
		// The probe reaches both groups, and must join one of them.
		probe.Join = []string{address(0), address(2)}
		f.start(4, probe)
		time.Sleep(time.Minute)
		if err := errors.Join(mine.Err(), yours.Err()); err != nil {
			t.Errorf("a group suffered from another: %v", err)
		}
		a, b := f.nodes[0].Status().Group, f.nodes[2].Status().Group
		if a == b {
			t.Fatal("two groups have merged")
		}
		t.Logf("the newcomer joined: %v, of %q; it says %q", f.nodes[4].Status().Joined, f.nodes[4].Status().Group,
			f.nodes[4].Status().Waiting)
	})
}

func TestStartWithAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := mortise.Start(ctx, mortise.Config{})
	wantIs(t, err, context.Canceled)
}
