package swim

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mortise-lock/mortise/cluster/gossip"
)

// wire is memberlist's transport; it uses a [gossip.Net].
//
// memberlist's Shutdown does not wait for its goroutines, and a goroutine that waits for the answer
// to a probe may wait for ten seconds. Shutdown of the wire therefore answers all pending probes
// itself.
type wire struct {
	net     gossip.Net
	label   string
	self    string
	aliases aliases
	ctx     context.Context // ends with Shutdown
	cancel  context.CancelFunc
	pumps   sync.WaitGroup
	packets chan *memberlist.Packet
	streams chan net.Conn

	mu     sync.Mutex // guards the fields below
	closed bool
	open   map[*trackedConn]struct{}
	probes [64]uint32 // sequence numbers of the latest probes, a ring buffer
	next   int
}

var _ memberlist.NodeAwareTransport = (*wire)(nil)

func newWire(n gossip.Net, label, self string) (*wire, error) {
	w := &wire{
		net: n, label: label, self: self, open: make(map[*trackedConn]struct{}),
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
	}
	if _, _, err := w.aliases.ip(self); err != nil {
		return nil, fmt.Errorf("cluster: Advertise: %w", err)
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w, nil
}

// begin starts the pumps. They call runs before they pass a packet or a stream to memberlist, and
// drop it if runs returns false.
func (w *wire) begin(runs func() bool) {
	w.pumps.Go(func() { w.pumpPackets(runs) })
	w.pumps.Go(func() { w.pumpStreams(runs) })
}

func (w *wire) pumpPackets(runs func() bool) {
	for {
		data, from, at, err := w.net.ReadPacket(w.ctx)
		if err != nil {
			return
		}
		if !sound(data) {
			continue
		}
		if !runs() {
			continue
		}
		_, _, _ = w.aliases.ip(from)
		select {
		case w.packets <- &memberlist.Packet{Buf: data, From: address(from), Timestamp: at}:
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *wire) pumpStreams(runs func() bool) {
	for {
		conn, err := w.net.AcceptStream(w.ctx)
		if err != nil {
			return
		}
		if !runs() {
			conn.Close()
			continue
		}
		tracked := w.track(conn)
		select {
		case w.streams <- tracked:
		case <-w.ctx.Done():
			tracked.Close()
			return
		}
	}
}

func (w *wire) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return w.aliases.ip(w.self)
}
func (w *wire) PacketCh() <-chan *memberlist.Packet { return w.packets }
func (w *wire) StreamCh() <-chan net.Conn           { return w.streams }

func (w *wire) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	return w.WriteTo(b, to.Addr)
}

func (w *wire) WriteTo(b []byte, addr string) (time.Time, error) {
	w.mu.Lock()
	closed := w.closed
	if seq, ok := probeSequence(b); ok && !closed {
		w.probes[w.next%len(w.probes)] = seq
		w.next++
	}
	w.mu.Unlock()
	if closed {
		return time.Time{}, net.ErrClosed
	}
	_ = w.net.WriteTo(b, w.aliases.addr(addr)) // a packet that cannot be sent is lost
	return time.Now(), nil
}

func (w *wire) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return w.DialTimeout(to.Addr, timeout)
}

func (w *wire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	conn, err := w.net.DialStream(ctx, w.aliases.addr(addr))
	if err != nil {
		return nil, err
	}
	tracked := w.track(conn)
	if w.ctx.Err() != nil { // Shutdown may have closed the streams before
		tracked.Close()
		return nil, net.ErrClosed
	}
	return tracked, nil
}

// track lets Shutdown close a stream.
func (w *wire) track(conn net.Conn) net.Conn {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &trackedConn{Conn: newExchange(conn), wire: w}
	w.open[c] = struct{}{}
	return c
}

// end ends the pumps of a wire that memberlist does not use.
func (w *wire) end() {
	w.cancel()
	w.pumps.Wait()
}

// Shutdown ends the pumps and all streams, and releases the goroutines of memberlist that wait for
// a probe. memberlist calls Shutdown while its listeners still run.
func (w *wire) Shutdown() error {
	w.end()
	if !w.ack(0) { // once this answer is received, no earlier packet can cause a new probe
		return nil
	}
	w.mu.Lock()
	w.closed = true
	probes := w.probes
	streams := make([]*trackedConn, 0, len(w.open))
	for c := range w.open {
		streams = append(streams, c)
	}
	w.mu.Unlock()
	for _, c := range streams {
		c.Close()
	}
	for _, seq := range probes {
		if seq != 0 && !w.ack(seq) {
			break
		}
	}
	w.ack(0)
	return nil
}

// ack passes the answer to a probe to memberlist. No probe has the number 0.
func (w *wire) ack(seq uint32) bool {
	b, err := memberlist.AddLabelHeaderToPacket(ackPacket(seq), w.label)
	if err != nil {
		return false
	}
	select {
	case w.packets <- &memberlist.Packet{Buf: b, From: address(w.self), Timestamp: time.Now()}:
		return true
	case <-time.After(time.Second): // memberlist was never started, or is shut down already
		return false
	}
}

// trackedConn is a stream that unregisters itself when it is closed.
type trackedConn struct {
	net.Conn
	wire *wire
}

func (c *trackedConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.open, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}
