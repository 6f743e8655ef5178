// Package memnet implements a network in memory, for tests of whole nodes inside testing/synctest
// bubbles.
//
// Its listeners and dialers behave like TCP on one machine, in everything that mortise depends on.
// A connection to an address without a listener is refused immediately. Writes are buffered and
// block if the reader does not read. Deadlines work. If one end is closed, the other reads all
// written bytes and then EOF. A pair of hosts can be cut, in both directions or in one. A cut
// delays the bytes in flight, and new connections hang until their context ends. Bytes can have a
// latency, and can be lost and sent again.
//
// Concurrency: everything is safe for concurrent use. It blocks only on channels, on timers and on
// mutexes that are held briefly, so a bubble sees every wait. There are no background goroutines.
//
// Limits: there are no datagrams. All connections have the same latency, and connecting takes no
// time. Bytes are not reordered. A cut in one direction never affects the other direction. If the
// other end is closed, a writer learns this immediately, even during a cut, but a reader learns it
// only when the cut ends. Package internal/lab/sim simulates packets.
//
// Refused alternative: net.Pipe. Every write waits for its reader, so code that works over TCP may
// deadlock on a net.Pipe.
package memnet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Network is a set of hosts.
type Network struct {
	mu        sync.Mutex // guards all below; never held across a wait
	listeners map[string]*listener
	conns     map[*conn]struct{}
	cuts      map[route]struct{}
	latency   time.Duration        // latency of bytes that are written from now on
	lost      func() time.Duration // nil means that nothing is lost
	healed    chan struct{}        // closed and replaced when a cut ends
	nextPort  int
}

// New returns an empty network.
func New() *Network {
	return &Network{
		listeners: map[string]*listener{},
		conns:     map[*conn]struct{}{},
		cuts:      map[route]struct{}{},
		healed:    make(chan struct{}),
		nextPort:  40_000,
	}
}

// Listen opens a listener at host:port. Port 0 is replaced by an unused port. If the address is in
// use, Listen fails with syscall.EADDRINUSE.
func (n *Network) Listen(address string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if port == "0" {
		n.nextPort++
		address = net.JoinHostPort(host, fmt.Sprint(n.nextPort))
	}
	if n.listeners[address] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr(address), Err: syscall.EADDRINUSE}
	}
	l := &listener{net: n, addr: addr(address), backlog: make(chan *conn, 128), closed: make(chan struct{})}
	n.listeners[address] = l
	return l, nil
}

// Dialer returns the function with which a host dials. Cuts and crashes of the host apply to these
// connections.
func (n *Network) Dialer(host string) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) { return n.dial(ctx, host, address) }
}

func (n *Network) dial(ctx context.Context, host, address string) (net.Conn, error) {
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: addr(address), Err: err}
	}
	var here, there *conn
	var l *listener
	for here == nil {
		n.mu.Lock()
		cut := n.isCut(host, hostOf(address)) || n.isCut(hostOf(address), host) // TCP needs both
		healed := n.healed
		l = n.listeners[address]
		if !cut && l != nil { // under the same lock, so that a later cut finds the connection
			here, there = n.connect(host, address)
		}
		n.mu.Unlock()
		switch {
		case here != nil:
		case !cut:
			return fail(syscall.ECONNREFUSED)
		default:
			select {
			case <-ctx.Done():
				return fail(ctx.Err())
			case <-healed:
			}
		}
	}
	select {
	case l.backlog <- there:
		select {
		case <-l.closed: // Close may have emptied the backlog already
		default:
			return here, nil
		}
		here.reset()
		return fail(syscall.ECONNREFUSED)
	case <-l.closed:
		here.reset()
		return fail(syscall.ECONNREFUSED)
	case <-ctx.Done():
		here.reset()
		return fail(ctx.Err())
	}
}

// connect creates a connection and returns both ends. The caller must hold mu.
func (n *Network) connect(host, address string) (here, there *conn) {
	n.nextPort++
	local := net.JoinHostPort(host, fmt.Sprint(n.nextPort))
	here, there = newPair(n, addr(local), addr(address))
	here.in.latency, there.in.latency = n.latency, n.latency
	here.in.lost, there.in.lost = n.lost, n.lost
	n.conns[here], n.conns[there] = struct{}{}, struct{}{}
	return here, there
}

// Cut silently stops all traffic between two hosts. Bytes in flight and new connections wait until
// Heal.
func (n *Network) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay silently stops traffic from one host to another, but not in the other direction. New
// connections between the hosts wait until Heal.
func (n *Network) CutOneWay(from, to string) {
	n.mu.Lock()
	n.cuts[route{from, to}] = struct{}{}
	conns := n.between(from, to)
	n.mu.Unlock()
	for _, c := range conns {
		if hostOf(string(c.local)) == to {
			c.in.setStalled(true)
		}
	}
}

// Heal ends the cut between two hosts, in both directions.
func (n *Network) Heal(a, b string) {
	n.HealOneWay(a, b)
	n.HealOneWay(b, a)
}

// HealOneWay ends the cut from one host to another.
func (n *Network) HealOneWay(from, to string) {
	n.mu.Lock()
	delete(n.cuts, route{from, to})
	conns := n.between(from, to)
	close(n.healed)
	n.healed = make(chan struct{})
	n.mu.Unlock()
	for _, c := range conns {
		if hostOf(string(c.local)) == to {
			c.in.setStalled(false)
		}
	}
}

// SetLatency sets the latency of all bytes that are written after the call. The latency may be
// reduced only when no bytes are in flight.
func (n *Network) SetLatency(d time.Duration) {
	n.mu.Lock()
	n.latency = d
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.in.setLatency(d)
	}
}

// SetLoss makes the network lose each later write with the given probability. As with TCP, a lost
// write is sent again after a pause, until it is not lost, and later writes wait for it. Without a
// latency, SetLoss has no effect.
func (n *Network) SetLoss(chance float64, pause time.Duration, seed uint64) {
	var mu sync.Mutex // guards random
	random := rand.New(rand.NewPCG(seed, 0))
	lost := func() (late time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		for random.Float64() < chance {
			late += pause
		}
		return late
	}
	n.mu.Lock()
	n.lost = lost
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		c.in.change(func() { c.in.lost = lost })
	}
}

// Reset resets every connection of a host. The listeners of the host are not affected.
func (n *Network) Reset(host string) {
	n.mu.Lock()
	var ends []*conn
	for c := range n.conns {
		if hostOf(string(c.local)) == host {
			ends = append(ends, c)
		}
	}
	n.mu.Unlock()
	for _, c := range ends {
		c.reset()
	}
}

// Crash resets every connection and closes every listener of a host.
func (n *Network) Crash(host string) {
	n.mu.Lock()
	var ends []func()
	for address, l := range n.listeners {
		if hostOf(address) == host {
			ends = append(ends, func() { _ = l.Close() })
		}
	}
	for c := range n.conns {
		if hostOf(string(c.local)) == host {
			ends = append(ends, c.reset)
		}
	}
	n.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

// between returns the connections between two hosts. The caller must hold mu.
func (n *Network) between(a, b string) []*conn {
	var found []*conn
	for c := range n.conns {
		if r := (route{hostOf(string(c.local)), hostOf(string(c.remote))}); r == (route{a, b}) || r == (route{b, a}) {
			found = append(found, c)
		}
	}
	return found
}

func (n *Network) forget(c *conn) {
	n.mu.Lock()
	delete(n.conns, c)
	n.mu.Unlock()
}

// isCut must be called with mu held.
func (n *Network) isCut(from, to string) bool {
	_, cut := n.cuts[route{from, to}]
	return cut
}

type route struct{ from, to string }

func hostOf(address string) string {
	host, _, _ := strings.Cut(address, ":")
	return host
}

type addr string

func (addr) Network() string  { return "tcp" }
func (a addr) String() string { return string(a) }

type listener struct {
	net     *Network
	addr    addr
	backlog chan *conn
	once    sync.Once
	closed  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
	}
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.net.mu.Lock()
		delete(l.net.listeners, string(l.addr))
		l.net.mu.Unlock()
		close(l.closed)
		for {
			select {
			case c := <-l.backlog:
				c.reset()
			default:
				return
			}
		}
	})
	return nil
}

func (l *listener) Addr() net.Addr { return l.addr }
