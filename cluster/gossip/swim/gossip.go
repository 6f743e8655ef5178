package swim

import (
	"context"
	"encoding/hex"
	"errors"
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
	config *memberlist.Config // not changed after Start
	wire   *wire
	meta   atomic.Pointer[[]byte]
	turn   uint64 // number of calls of setMeta
	news   func()
	unread unread

	logger   *slog.Logger
	rosterMu sync.Mutex // guards roster and warned
	roster   roster
	warned   time.Time // when a full roster was last logged

	mu      sync.Mutex             // guards the fields below
	list    *memberlist.Memberlist // nil until the first Join, packet or stream
	leaving chan struct{}          // closed when Leave has sent its announcement
	gone    bool                   // memberlist is not started any more
}

// All other times are memberlist's defaults for a LAN.
const streamTimeout = 5 * time.Second

// Start starts gossip. The caller must end it with Close. Instances find each other only after
// one of them has called Join. Until then, and until the first packet or stream of another instance
// arrives, memberlist does not run.
func Start(cfg gossip.Config, first gossip.Meta) (gossip.Gossip, error) {
	g := &Gossip{news: cfg.News, logger: cfg.Logger, roster: newRoster(maxMembers)}
	g.setMeta(first)
	var name [12]byte
	cfg.Random(name[:])
	mc := memberlist.DefaultLANConfig()
	// a new name at every start, since memberlist rejects a known name at a new address
	mc.Name = hex.EncodeToString(name[:])
	mc.Label = cfg.Label
	mc.BindAddr, mc.BindPort, mc.AdvertisePort = "", 0, 0
	mc.TCPTimeout = streamTimeout
	mc.EnableCompression = false // packets have only a few hundred bytes; see also parcels.go
	mc.Delegate, mc.Events, mc.Alive = delegate{g}, events{g}, events{g}
	mc.Logger = log.New(slogWriter{cfg.Logger}, "", 0)
	g.config = mc
	wire, err := newWire(cfg.Net, cfg.Label, cfg.Advertise)
	if err != nil {
		return nil, err
	}
	g.wire, mc.Transport = wire, wire
	g.passSelf()
	wire.begin(func() bool { _, err := g.begin(); return err == nil })
	return g, nil
}

// begin starts memberlist, if it does not run. An instance that is alone does not need it, and its
// timers are most of what such an instance would do.
func (g *Gossip) begin() (*memberlist.Memberlist, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.list != nil {
		return g.list, nil
	}
	if g.gone {
		return nil, errGone
	}
	list, err := memberlist.Create(g.config)
	if err != nil {
		g.gone = true // the same configuration would fail again
		g.logger.Error("gossip cannot start", "err", err)
		return nil, fmt.Errorf("cluster: gossip cannot start: %w", err)
	}
	g.list = list
	return list, nil
}

var errGone = errors.New("cluster: gossip has ended")

// running returns memberlist, or nil if it does not run.
func (g *Gossip) running() *memberlist.Memberlist {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.list
}

// passSelf reports this instance itself, as memberlist does when it runs.
func (g *Gossip) passSelf() {
	if m, err := decodeMeta(*g.meta.Load()); err == nil {
		g.pass(g.config.Name, m, true)
	}
}

func (g *Gossip) setMeta(m gossip.Meta) {
	b := padded(m, g.turn)
	g.turn++
	g.meta.Store(&b)
}

// Tell replaces the data about this instance that gossip spreads.
func (g *Gossip) Tell(m gossip.Meta) {
	g.setMeta(m)
	if list := g.running(); list != nil {
		// With this timeout, UpdateNode does not wait until the update is sent.
		_ = list.UpdateNode(time.Nanosecond)
		return
	}
	g.passSelf()
}

// Join exchanges all data with the instance at addr. It blocks for a few seconds at most, and
// returns when Close is called.
func (g *Gossip) Join(addr string) error {
	ip, port, err := g.wire.aliases.ip(addr)
	if err != nil {
		return err
	}
	list, err := g.begin()
	if err != nil {
		return err
	}
	_, err = list.Join([]string{joinIP(ip, port)})
	return err
}

// Leave announces that this instance leaves, and waits until the announcement was sent, but not
// longer than the given time. If the other instances leave at the same time, that never happens.
// Leave must be called only once. After Close it does nothing.
func (g *Gossip) Leave(within time.Duration) {
	g.mu.Lock()
	list := g.list
	if g.gone || list == nil {
		g.gone = true // no other instance knows this one, and none will
		g.mu.Unlock()
		return
	}
	left := make(chan struct{})
	g.leaving = left
	g.mu.Unlock()
	defer close(left)
	_ = list.Leave(within)
}

// Close ends memberlist and everything that memberlist has started. It waits for a Leave that is
// under way. It must be called only once.
func (g *Gossip) Close() {
	g.mu.Lock()
	g.gone = true
	left, list := g.leaving, g.list
	g.mu.Unlock()
	if left != nil {
		<-left // memberlist panics if it is shut down first
	}
	if list == nil {
		g.wire.end()
		return
	}
	_ = list.Shutdown() // also shuts the wire down
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
