package gossip

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

// Net carries gossip between instances. All methods are called concurrently. An address is
// host:port.
type Net interface {
	// WriteTo sends one packet or drops it. It must not block, and keeps no reference to b.
	WriteTo(b []byte, addr string) error
	// ReadPacket waits for the next packet; data belongs to the caller. An error means that there
	// will be none, because ctx has ended or the network is closed.
	ReadPacket(ctx context.Context) (data []byte, from string, at time.Time, err error)
	// DialStream opens a stream. Its reads and writes must obey deadlines, and end when it is
	// closed.
	DialStream(ctx context.Context, addr string) (net.Conn, error)
	// AcceptStream waits for the next incoming stream. An error means that there will be none.
	AcceptStream(ctx context.Context) (net.Conn, error)
}

// Config says how an instance gossips. All fields must be set.
type Config struct {
	Net       Net
	Label     string       // of the cluster, 1 to 255 bytes: packets and streams with another are dropped
	Advertise string       // host:port at which the others reach this instance
	Random    func([]byte) // fills with unpredictable bytes
	Logger    *slog.Logger
	// News is called when there is something to Take: at once, or 50 ms after the last Take at the
	// earliest. It is called under a lock of memberlist, so it must not block nor call Gossip; and
	// perhaps before Start returns, and after Close.
	News func()
}

// Gossip is one instance's part in it. Tell, Join, Take and Leave are safe for concurrent use, but
// Tell is called by one goroutine at a time.
type Gossip struct {
	list   *memberlist.Memberlist
	wire   *wire
	meta   atomic.Pointer[[]byte]
	turn   uint64 // of setMeta
	news   func()
	unread unread

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
	streamTimeout = 5 * time.Second
	leaveTimeout  = 2 * time.Second
)

// Start starts to tell others about this instance. It must be ended by Close. It reaches no other
// instance before Join does, or another instance's Join.
func Start(cfg Config, first Meta) (*Gossip, error) {
	g := &Gossip{news: cfg.News, logger: cfg.Logger, roster: newRoster(membersMax)}
	g.setMeta(first)
	wire, err := newWire(cfg.Net, cfg.Label, cfg.Advertise)
	if err != nil {
		return nil, err
	}
	g.wire = wire
	var name [12]byte
	cfg.Random(name[:])
	mc := memberlist.DefaultLANConfig()
	// new at every start: a known name at a new address would be refused as a conflict
	mc.Name = hex.EncodeToString(name[:])
	mc.Label, mc.Transport = cfg.Label, wire
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = "", 0, 0
	mc.TCPTimeout = streamTimeout
	mc.EnableCompression = false // a few hundred bytes per packet; and see parcels.go
	mc.Delegate, mc.Events, mc.Alive = delegate{g}, events{g}, events{g}
	mc.Logger = log.New(slogWriter{cfg.Logger}, "", 0)
	list, err := memberlist.Create(mc)
	if err != nil {
		wire.Shutdown()
		return nil, fmt.Errorf("cluster: gossip cannot start: %w", err)
	}
	g.list = list
	return g, nil
}

func (g *Gossip) setMeta(m Meta) {
	b := m.padded(g.turn)
	g.turn++
	g.meta.Store(&b)
}

// Tell replaces what is said about this instance.
func (g *Gossip) Tell(m Meta) {
	g.setMeta(m)
	// The timeout is how long to wait for the news to be sent, which is not waited for.
	_ = g.list.UpdateNode(time.Nanosecond)
}

// Join exchanges everything that is known with the instance at addr. It blocks for some seconds at
// most, and ends with Close.
func (g *Gossip) Join(addr string) error {
	ip, port, err := g.wire.aliases.ip(addr)
	if err != nil {
		return err
	}
	_, err = g.list.Join([]string{joinIP(ip, port)})
	return err
}

// Leave says goodbye and waits until that was sent, at most two seconds. It is called once. After
// Close it does nothing.
func (g *Gossip) Leave() {
	g.mu.Lock()
	if g.gone {
		g.mu.Unlock()
		return
	}
	left := make(chan struct{})
	g.leaving = left
	g.mu.Unlock()
	defer close(left)
	_ = g.list.Leave(leaveTimeout)
}

// Close ends memberlist and everything that it has started. It waits for a goodbye that is being
// said. It is called once.
func (g *Gossip) Close() {
	g.mu.Lock()
	g.gone = true
	left := g.leaving
	g.mu.Unlock()
	if left != nil {
		<-left // memberlist panics if it is shut down first
	}
	_ = g.list.Shutdown() // shuts the wire down too
}

// delegate gives memberlist what this instance says about itself.
type delegate struct{ g *Gossip }

func (d delegate) NodeMeta(limit int) []byte {
	if b := *d.g.meta.Load(); len(b) <= limit {
		return b
	}
	return nil
}
func (delegate) NotifyMsg([]byte)                {}
func (delegate) GetBroadcasts(int, int) [][]byte { return nil }
func (delegate) LocalState(bool) []byte          { return nil }
func (delegate) MergeRemoteState([]byte, bool)   {}

// events hands memberlist's news to the owner.
type events struct{ g *Gossip }

func (e events) NotifyJoin(n *memberlist.Node)   { e.pass(n, true) }
func (e events) NotifyUpdate(n *memberlist.Node) { e.pass(n, true) }
func (e events) NotifyLeave(n *memberlist.Node)  { e.pass(n, false) }

func (e events) pass(n *memberlist.Node, here bool) {
	e.g.placed(n.Name, here)
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return // another version: it is no place to ask, and is not shown
	}
	_, _, _ = e.g.wire.aliases.ip(m.Addr)
	e.g.pass(n.Name, m, here)
}

// NotifyAlive decides which members memberlist takes in. memberlist calls it under its own lock.
func (e events) NotifyAlive(n *memberlist.Node) error {
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
func (g *Gossip) placed(name string, here bool) {
	g.rosterMu.Lock()
	defer g.rosterMu.Unlock()
	if here {
		g.roster.joined(name)
	} else {
		g.roster.left(name, time.Now())
	}
}

// slogWriter turns memberlist's log lines into debug lines: what matters of them, cluster says in
// its own words.
type slogWriter struct{ to *slog.Logger }

func (w slogWriter) Write(line []byte) (int, error) {
	if w.to.Enabled(context.Background(), slog.LevelDebug) {
		w.to.Debug("gossip", "line", string(trimLine(line)))
	}
	return len(line), nil
}
