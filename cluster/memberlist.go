package cluster

import (
	"context"
	"encoding/hex"
	"fmt"
	"log"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// gossip is memberlist, and the only file that knows it. Its delegates copy what they are given, hand it to the owner, and return,
// because memberlist calls them under its own lock; after close they drop it.
type gossip struct {
	list *memberlist.Memberlist
	wire *gossipWire
	meta atomic.Pointer[[]byte]
	turn uint64                               // of setMeta, which only the owner calls once it runs
	news func(name string, m meta, here bool) // posts to the owner; must not block

	logger   *slog.Logger
	rosterMu sync.Mutex // guards roster and warned
	roster   roster
	warned   time.Time // when it was last logged that the roster is full

	mu      sync.Mutex    // guards the rest
	leaving chan struct{} // closed when the goodbye was said
	gone    bool          // closed, or about to be
}

// Times of gossip. Those that are not here are memberlist's for a LAN.
const (
	gossipStreamTimeout = 5 * time.Second
	gossipLeaveTimeout  = 2 * time.Second
)

// startGossip starts to tell others about this instance. It must be ended by close.
func startGossip(cfg *Config, first meta, news func(string, meta, bool)) (*gossip, error) {
	g := &gossip{news: news, logger: cfg.Logger, roster: newRoster(membersMax)}
	g.setMeta(first)
	wire, err := newGossipWire(cfg.Net, cfg.Label, cfg.Advertise)
	if err != nil {
		return nil, err
	}
	g.wire = wire
	var name [12]byte
	cfg.Random(name[:])
	mc := memberlist.DefaultLANConfig()
	mc.Name = hex.EncodeToString(name[:]) // new at every start: a known name at a new address would be refused as a conflict
	mc.Label, mc.Transport = cfg.Label, wire
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = "", 0, 0
	mc.TCPTimeout = gossipStreamTimeout
	mc.EnableCompression = false // a few hundred bytes per packet; and see gossipWire.sniff
	mc.Delegate, mc.Events, mc.Alive = gossipDelegate{g}, gossipEvents{g}, gossipEvents{g}
	mc.Logger = log.New(slogWriter{cfg.Logger}, "", 0)
	list, err := memberlist.Create(mc)
	if err != nil {
		wire.Shutdown()
		return nil, fmt.Errorf("cluster: gossip cannot start: %w", err)
	}
	g.list = list
	return g, nil
}

func (g *gossip) setMeta(m meta) {
	b := m.padded(g.turn)
	g.turn++
	g.meta.Store(&b)
}

// tell replaces what is said about this instance.
func (g *gossip) tell(m meta) {
	g.setMeta(m)
	// The timeout is how long to wait for the news to be sent, which is not waited for.
	_ = g.list.UpdateNode(time.Nanosecond)
}

// join exchanges everything that is known with whoever is at addr. It blocks, but not after close.
func (g *gossip) join(addr string) error {
	ip, port, err := g.wire.aliases.ip(addr)
	if err != nil {
		return err
	}
	_, err = g.list.Join([]string{joinIP(ip, port)})
	return err
}

// leave says goodbye and waits until that was sent, at most gossipLeaveTimeout. It is called once.
func (g *gossip) leave() {
	g.mu.Lock()
	if g.gone {
		g.mu.Unlock()
		return
	}
	left := make(chan struct{})
	g.leaving = left
	g.mu.Unlock()
	defer close(left)
	_ = g.list.Leave(gossipLeaveTimeout)
}

// close ends memberlist and everything that it has started. It waits for a goodbye that is being said. It is called once.
func (g *gossip) close() {
	g.mu.Lock()
	g.gone = true
	left := g.leaving
	g.mu.Unlock()
	if left != nil {
		<-left // memberlist panics if it is shut down first
	}
	_ = g.list.Shutdown() // shuts the wire down too
}

// gossipDelegate gives memberlist what this instance says about itself.
type gossipDelegate struct{ g *gossip }

func (d gossipDelegate) NodeMeta(limit int) []byte {
	if b := *d.g.meta.Load(); len(b) <= limit {
		return b
	}
	return nil
}
func (gossipDelegate) NotifyMsg([]byte)                {}
func (gossipDelegate) GetBroadcasts(int, int) [][]byte { return nil }
func (gossipDelegate) LocalState(bool) []byte          { return nil }
func (gossipDelegate) MergeRemoteState([]byte, bool)   {}

// gossipEvents hands memberlist's news to the owner.
type gossipEvents struct{ g *gossip }

func (e gossipEvents) NotifyJoin(n *memberlist.Node)   { e.pass(n, true) }
func (e gossipEvents) NotifyUpdate(n *memberlist.Node) { e.pass(n, true) }
func (e gossipEvents) NotifyLeave(n *memberlist.Node)  { e.pass(n, false) }

func (e gossipEvents) pass(n *memberlist.Node, here bool) {
	e.g.placed(n.Name, here)
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return // another version: it is no place to ask, and nobody to show
	}
	_, _, _ = e.g.wire.aliases.ip(m.Addr)
	e.g.news(n.Name, m, here)
}

// NotifyAlive decides which members memberlist takes in. memberlist calls it under its own lock.
func (e gossipEvents) NotifyAlive(n *memberlist.Node) error {
	if len(n.Name) > memberNameMax || len(n.Meta) > metaBytesMax || len(n.Addr) > 16 {
		return errBadMember
	}
	now := time.Now()
	e.g.rosterMu.Lock()
	full := !e.g.roster.admit(n.Name, now)
	warn := full && now.Sub(e.g.warned) > fullEvery
	if warn {
		e.g.warned = now
	}
	e.g.rosterMu.Unlock()
	if warn {
		e.g.logger.Warn("gossip knows as many members as it may and sees no further ones; if the fleet is smaller, "+
			"a process with the secret makes members up: rotate the secret", "limit", membersMax)
	}
	if full {
		return errRosterFull
	}
	return nil
}

// placed notes in the roster that a member is here or has left.
func (g *gossip) placed(name string, here bool) {
	g.rosterMu.Lock()
	defer g.rosterMu.Unlock()
	if here {
		g.roster.joined(name)
	} else {
		g.roster.left(name, time.Now())
	}
}

// slogWriter turns memberlist's log lines into debug lines: what matters of them, the owner says in its own words.
type slogWriter struct{ to *slog.Logger }

func (w slogWriter) Write(line []byte) (int, error) {
	if w.to.Enabled(context.Background(), slog.LevelDebug) {
		w.to.Debug("gossip", "line", string(trimLine(line)))
	}
	return len(line), nil
}

// gossipWire is memberlist's transport over Net.
//
// memberlist's Shutdown does not wait for its goroutines, and one that waits for the answer to a probe goes on waiting for up to ten
// seconds. So at the end the wire answers all probes that are still open by itself: every goroutine of memberlist then ends at once.
type gossipWire struct {
	net     Net
	label   string
	self    string
	aliases aliases
	ctx     context.Context // of everything that waits for the network
	cancel  context.CancelFunc
	pumps   sync.WaitGroup
	packets chan *memberlist.Packet
	streams chan net.Conn

	mu     sync.Mutex // guards the rest
	closed bool
	open   map[*gossipConn]struct{}
	probes [64]uint32 // sequence numbers of the last probes, a ring
	next   int
}

var _ memberlist.NodeAwareTransport = (*gossipWire)(nil)

func newGossipWire(n Net, label, self string) (*gossipWire, error) {
	w := &gossipWire{
		net: n, label: label, self: self, open: make(map[*gossipConn]struct{}),
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
	}
	if _, _, err := w.aliases.ip(self); err != nil {
		return nil, fmt.Errorf("cluster: Advertise: %w", err)
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.pumps.Go(w.pumpPackets)
	w.pumps.Go(w.pumpStreams)
	return w, nil
}

func (w *gossipWire) pumpPackets() {
	for {
		data, from, at, err := w.net.ReadPacket(w.ctx)
		if err != nil {
			return
		}
		if !sound(data) {
			continue
		}
		_, _, _ = w.aliases.ip(from)
		select {
		case w.packets <- &memberlist.Packet{Buf: data, From: gossipAddr(from), Timestamp: at}:
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *gossipWire) pumpStreams() {
	for {
		conn, err := w.net.AcceptStream(w.ctx)
		if err != nil {
			return
		}
		tracked, err := w.track(conn)
		if err != nil {
			return
		}
		select {
		case w.streams <- tracked:
		case <-w.ctx.Done():
			tracked.Close()
			return
		}
	}
}

func (w *gossipWire) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return w.aliases.ip(w.self)
}
func (w *gossipWire) PacketCh() <-chan *memberlist.Packet { return w.packets }
func (w *gossipWire) StreamCh() <-chan net.Conn           { return w.streams }

func (w *gossipWire) WriteToAddress(b []byte, to memberlist.Address) (time.Time, error) {
	return w.WriteTo(b, to.Addr)
}

func (w *gossipWire) WriteTo(b []byte, addr string) (time.Time, error) {
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
	_ = w.net.WriteTo(b, w.aliases.addr(addr)) // a packet that cannot be sent is a packet that is lost
	return time.Now(), nil
}

func (w *gossipWire) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return w.DialTimeout(to.Addr, timeout)
}

func (w *gossipWire) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	defer cancel()
	conn, err := w.net.DialStream(ctx, w.aliases.addr(addr))
	if err != nil {
		return nil, err
	}
	return w.track(conn)
}

// track remembers a stream so that Shutdown can end it.
func (w *gossipWire) track(conn net.Conn) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		conn.Close()
		return nil, net.ErrClosed
	}
	conn = newExchange(conn)
	c := &gossipConn{Conn: conn, wire: w}
	w.open[c] = struct{}{}
	return c, nil
}

// Shutdown ends the pumps and all streams and releases whoever waits for a probe. memberlist calls it while its listeners still run.
func (w *gossipWire) Shutdown() error {
	w.cancel()
	w.pumps.Wait()
	if !w.ack(0) { // once this is taken, every earlier packet has been dealt with, so no new probe can come of one
		return nil
	}
	w.mu.Lock()
	w.closed = true
	probes := w.probes
	streams := make([]*gossipConn, 0, len(w.open))
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

// ack gives memberlist the answer to a probe. Nobody has sent a probe with number 0.
func (w *gossipWire) ack(seq uint32) bool {
	b, err := memberlist.AddLabelHeaderToPacket(ackPacket(seq), w.label)
	if err != nil {
		return false
	}
	select {
	case w.packets <- &memberlist.Packet{Buf: b, From: gossipAddr(w.self), Timestamp: time.Now()}:
		return true
	case <-time.After(time.Second): // nobody listens: memberlist never started, or is shut down
		return false
	}
}

// gossipConn is a stream that forgets itself when it is closed.
type gossipConn struct {
	net.Conn
	wire *gossipWire
}

func (c *gossipConn) Close() error {
	c.wire.mu.Lock()
	delete(c.wire.open, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}
