//go:build linux

package proctest

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"
)

const behindForwarder = ":7948"

// kind is the purpose of a connection, which its first request shows. No connection serves two
// kinds.
type kind int

const (
	unknown kind = iota // there was no request
	links               // links, which carry messages of sessions and raft
	gossip              // gossip, and requests about founding, leaving and changes of voters
)

// Without TLS each side begins a connection with the preface, 32 random bytes, the length of its
// greeting in four bytes, and the greeting. After the greeting come the frames of a link, or
// HTTP/2, whose first request names its method in the Huffman code of HPACK. The constants are
// results of hpack.AppendHuffmanString, in hexadecimal, for "/mortise.transport.v1.Peer/Snapshot"
// and, without the last bits, for "/mortise.".
const (
	preface        = "mortise\n"
	randomBytes    = 32
	callPreface    = "PRI "
	anyMethod      = "6293d89320ab"
	snapshotMethod = "6293d89320aba6c1d48acf6257ee15f594b631baa1d689ce9f"
)

func kindOf(opening []byte) kind {
	has := func(text string) bool {
		code, err := hex.DecodeString(text)
		return err == nil && bytes.Contains(opening, code)
	}
	opening, greets := bytes.CutPrefix(opening, []byte(preface))
	if !greets || len(opening) < randomBytes+4 {
		return unknown
	}
	opening = opening[randomBytes:]
	opening = opening[min(4+int(binary.BigEndian.Uint32(opening)), len(opening)):]
	switch {
	case len(opening) < len(callPreface):
		return unknown
	case !bytes.HasPrefix(opening, []byte(callPreface)), has(snapshotMethod):
		return links
	case has(anyMethod):
		return gossip
	}
	return unknown
}

// forwarders accept the connections to all instances of a world. A held connection is neither
// refused nor closed, as if its packets were lost.
type forwarders struct {
	mu   sync.Mutex // guards the fields below
	hold func(k kind, from, to string) bool
	free chan struct{} // closed and replaced when the function hold changes
	seen map[kind]int
}

func newForwarders() *forwarders {
	return &forwarders{hold: func(kind, string, string) bool { return false }, free: make(chan struct{}),
		seen: map[kind]int{}}
}

// cut sets which connections are held, including existing connections.
func (f *forwarders) cut(hold func(k kind, from, to string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hold = hold
	close(f.free)
	f.free = make(chan struct{})
}

func (f *forwarders) heal() { f.cut(func(kind, string, string) bool { return false }) }

func (f *forwarders) pass(k kind, from, to string, over <-chan struct{}) bool {
	for {
		f.mu.Lock()
		held, free := f.hold(k, from, to), f.free
		f.mu.Unlock()
		if !held {
			return true
		}
		select {
		case <-free:
		case <-over:
			return false
		}
	}
}

func (f *forwarders) stand(t *testing.T, m *machine) {
	t.Helper()
	var listener net.Listener
	err := inSpace(m, func() (err error) {
		listener, err = net.Listen("tcp4", m.ip+":7947")
		return err
	})
	if err != nil {
		t.Fatalf("forwarder: %v", err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go f.forward(client, m)
		}
	}()
}

func (f *forwarders) forward(client net.Conn, m *machine) {
	defer client.Close()
	var server net.Conn
	err := inSpace(m, func() (err error) {
		server, err = net.DialTimeout("tcp4", m.ip+behindForwarder, time.Second)
		return err
	})
	if err != nil {
		return
	}
	defer server.Close()
	c := &carried{f: f, from: netip.MustParseAddrPort(client.RemoteAddr().String()).Addr().String(), to: m.ip,
		over: make(chan struct{})}
	go c.carry(client, server)
	c.carry(server, client)
}

type carried struct {
	f        *forwarders
	from, to string

	mu      sync.Mutex // guards the fields below
	opening []byte     // bytes from the dialing instance, kept until the kind is known
	kind    kind
	over    chan struct{}
	ended   bool
}

// carry copies the data of one direction until either connection ends. It does not detect the end
// of a held connection.
func (c *carried) carry(from, to net.Conn) {
	defer c.end(from, to)
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !c.f.pass(c.look(from, buffer[:n]), c.from, c.to, c.over) {
				return
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// look returns the kind of the connection, or unknown if more bytes are needed.
func (c *carried) look(from net.Conn, chunk []byte) kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kind == unknown && from.RemoteAddr().(*net.TCPAddr).Port != 7948 {
		c.opening = append(c.opening, chunk...)
		if c.kind = kindOf(c.opening); c.kind != unknown {
			c.opening = nil
			c.f.mu.Lock()
			c.f.seen[c.kind]++
			c.f.mu.Unlock()
		}
	}
	return c.kind
}

func (c *carried) end(conns ...net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.ended = true
		close(c.over)
	}
	for _, conn := range conns {
		conn.Close()
	}
}

// TestKindsOfConnections cuts gossip while sessions and raft continue, and then cuts sessions and
// raft while gossip continues. Each cut lasts longer than all timeouts.
func TestKindsOfConnections(t *testing.T) {
	const cutFor = 30 * time.Second
	t.Run("gossip", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3, kinds: true})
		fleet := w.startAll(3)
		w.waitReady(slack*readyTime, fleet...)
		w.forwarders.cut(func(k kind, _, _ string) bool { return k == gossip })
		w.keepsGranting(cutFor, fleet...) // locks and the leader do not depend on gossip
		w.forwarders.heal()
		w.bothKindsSeen()
		w.verdict(slack * readyTime)
	})
	t.Run("links", func(t *testing.T) {
		begin(t, whole)
		w := newWorld(t, settings{replicas: 3, kinds: true, ttl: 3 * time.Second})
		fleet := w.startAll(3)
		w.waitReady(slack*readyTime, fleet...)
		leader := w.leader(fleet...)
		w.lose(leader)
		w.forwarders.cut(func(k kind, from, to string) bool {
			return k == links && (from == leader.machine.ip || to == leader.machine.ip)
		})
		others := without(fleet, leader)
		w.leader(others...) // a new leader is elected although gossip reports that the old one runs
		w.keepsGranting(cutFor, others...)
		w.notGranted(leader, 2*time.Second)
		w.forwarders.heal()
		w.bothKindsSeen()
		w.verdict(slack * readyTime)
	})
}

// bothKindsSeen checks that there were connections of both kinds. Otherwise the test has not cut
// both kinds.
func (w *world) bothKindsSeen() {
	w.t.Helper()
	w.forwarders.mu.Lock()
	defer w.forwarders.mu.Unlock()
	for _, k := range []kind{links, gossip} {
		if w.forwarders.seen[k] == 0 {
			w.t.Errorf("the forwarders have seen no connection of kind %d: %v", k, w.forwarders.seen)
		}
	}
}
