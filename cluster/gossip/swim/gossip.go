package swim

import (
	"context"
	"encoding/hex"
	"fmt"
	"log"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"

	"github.com/mortise-lock/mortise/cluster/gossip"
)

// Gossip implements [gossip.Gossip] with memberlist, for one instance. Join, Take and Leave are
// safe for concurrent use. Tell may run concurrently with them, but not with another Tell.
type Gossip struct {
	list   *memberlist.Memberlist
	wire   *wire
	meta   atomic.Pointer[[]byte]
	turn   uint64 // number of calls of setMeta
	news   func()
	unread unread

	logger   *slog.Logger
	rosterMu sync.Mutex // guards roster and warned
	roster   roster
	warned   time.Time // when a full roster was last logged

	mu      sync.Mutex    // guards the fields below
	leaving chan struct{} // closed when Leave has sent its announcement
	gone    bool
}

// All other times are memberlist's defaults for a LAN.
const streamTimeout = 5 * time.Second

// Start starts gossip. The caller must end it with Close. Instances find each other only after
// one of them has called Join.
func Start(cfg gossip.Config, first gossip.Meta) (gossip.Gossip, error) {
	g := &Gossip{news: cfg.News, logger: cfg.Logger, roster: newRoster(maxMembers)}
	g.setMeta(first)
	wire, err := newWire(cfg.Net, cfg.Label, cfg.Advertise)
	if err != nil {
		return nil, err
	}
	g.wire = wire
	var name [12]byte
	cfg.Random(name[:])
	mc := memberlist.DefaultLANConfig()
	// a new name at every start, since memberlist rejects a known name at a new address
	mc.Name = hex.EncodeToString(name[:])
	mc.Label, mc.Transport = cfg.Label, wire
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = "", 0, 0
	mc.TCPTimeout = streamTimeout
	mc.EnableCompression = false // packets have only a few hundred bytes; see also parcels.go
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

func (g *Gossip) setMeta(m gossip.Meta) {
	b := padded(m, g.turn)
	g.turn++
	g.meta.Store(&b)
}

// Tell replaces the data about this instance that gossip spreads.
func (g *Gossip) Tell(m gossip.Meta) {
	g.setMeta(m)
	// With this timeout, UpdateNode does not wait until the update is sent.
	_ = g.list.UpdateNode(time.Nanosecond)
}

// Join exchanges all data with the instance at addr. It blocks for a few seconds at most, and
// returns when Close is called.
func (g *Gossip) Join(addr string) error {
	ip, port, err := g.wire.aliases.ip(addr)
	if err != nil {
		return err
	}
	_, err = g.list.Join([]string{joinIP(ip, port)})
	return err
}

// Leave announces that this instance leaves, and waits until the announcement was sent, but not
// longer than the given time. If the other instances leave at the same time, that never happens.
// Leave must be called only once. After Close it does nothing.
func (g *Gossip) Leave(within time.Duration) {
	g.mu.Lock()
	if g.gone {
		g.mu.Unlock()
		return
	}
	left := make(chan struct{})
	g.leaving = left
	g.mu.Unlock()
	defer close(left)
	_ = g.list.Leave(within)
}

// Close ends memberlist and everything that memberlist has started. It waits for a Leave that is
// under way. It must be called only once.
func (g *Gossip) Close() {
	g.mu.Lock()
	g.gone = true
	left := g.leaving
	g.mu.Unlock()
	if left != nil {
		<-left // memberlist panics if it is shut down first
	}
	_ = g.list.Shutdown() // also shuts the wire down
}

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

type events struct{ g *Gossip }

func (e events) NotifyJoin(n *memberlist.Node)   { e.pass(n, true) }
func (e events) NotifyUpdate(n *memberlist.Node) { e.pass(n, true) }
func (e events) NotifyLeave(n *memberlist.Node)  { e.pass(n, false) }

func (e events) pass(n *memberlist.Node, here bool) {
	e.g.placed(n.Name, here)
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return // a member of another version is not reported
	}
	_, _, _ = e.g.wire.aliases.ip(m.Addr)
	e.g.pass(n.Name, m, here)
}

// NotifyAlive decides which members memberlist accepts. memberlist calls it under its own lock.
func (e events) NotifyAlive(n *memberlist.Node) error {
	if len(n.Name) > maxMemberName || len(n.Meta) > maxMetaBytes || len(n.Addr) > 16 {
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
		e.g.logger.Warn("gossip has reached its limit of members and ignores further ones; if the fleet is smaller, "+
			"a process with the secret invents members: rotate the secret", "limit", maxMembers)
	}
	if full {
		return errRosterFull
	}
	return nil
}

func (g *Gossip) placed(name string, here bool) {
	g.rosterMu.Lock()
	defer g.rosterMu.Unlock()
	if here {
		g.roster.joined(name)
	} else {
		g.roster.left(name, time.Now())
	}
}

// slogWriter logs memberlist's lines at debug level.
type slogWriter struct{ to *slog.Logger }

func (w slogWriter) Write(line []byte) (int, error) {
	if w.to.Enabled(context.Background(), slog.LevelDebug) {
		w.to.Debug("gossip", "line", string(trimLine(line)))
	}
	return len(line), nil
}
