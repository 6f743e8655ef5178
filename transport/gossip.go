package transport

import (
	"fmt"
	"net"
	"sync"
	"time"
)

const packetBytes = 64 << 10

// Packet is a datagram of gossip.
type Packet struct {
	Data []byte    // owned by the receiver
	From string    // claimed by the sender
	At   time.Time // of arrival
}

// Gossip carries the traffic of a gossip protocol over the port: datagrams that may be lost, and
// byte streams. All methods are safe for concurrent use.
type Gossip struct {
	port    *pool
	packets chan Packet
	streams chan net.Conn

	mu        sync.Mutex // guards all below; never held across a wait
	packeters map[string]*packeter
	conns     map[*streamConn]struct{}
}

func newGossip(p *pool) *Gossip {
	return &Gossip{
		port: p, packets: make(chan Packet, packetsQueued), streams: make(chan net.Conn),
		packeters: map[string]*packeter{}, conns: map[*streamConn]struct{}{},
	}
}

func (g *Gossip) count() (packeters, streams int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.packeters), len(g.conns)
}

// WriteTo sends a packet of at most 64 KiB to an address. The packet may be lost even if the error
// is nil. WriteTo never blocks, and copies b. It fails with ErrTooLarge or ErrClosed.
func (g *Gossip) WriteTo(b []byte, addr string) error {
	if len(b) > packetBytes {
		return fmt.Errorf("%w: a packet of %d bytes", ErrTooLarge, len(b))
	}
	if isClosed(g.port.closing) {
		return ErrClosed
	}
	if !g.enqueue(addr, append([]byte(nil), b...)) {
		g.port.counts.packetsDropped.Add(1)
	}
	return nil
}

// Packets returns the channel of arriving packets. Packets are dropped if the channel is not read.
// The channel is never closed.
func (g *Gossip) Packets() <-chan Packet { return g.packets }

// Streams returns the channel of the byte streams that peers open. The receiver owns a stream and
// must close it. A stream that is not received within five seconds is refused. The channel is never
// closed.
func (g *Gossip) Streams() <-chan net.Conn { return g.streams }

// LocalAddr returns the address at which the port listens.
func (g *Gossip) LocalAddr() net.Addr { return g.port.config.Listener.Addr() }
