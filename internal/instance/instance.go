package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/cluster/gossip/swim"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/history"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

const snapshotTimeout = time.Minute

// Instance is one running instance. All methods are safe for concurrent use.
type Instance struct {
	config  Config
	env     env
	logger  *slog.Logger
	address string
	self    credentials.Peer // what the certificate proves; the root tier if TLS is off
	life    uint64           // number of starts with this directory; zero in memory
	records *records         // nil in memory

	trace    *trace.Tracer // nil without observers
	dir      *storage.Dir  // nil in memory
	port     port
	services transport.Services
	client   *client.Client
	sessions client.Set[sessionClient]
	members  atomic.Pointer[membership] // nil until the cluster is started
	replica  atomic.Pointer[ownReplica] // nil unless this instance has a replica
	// voters are the voters of the group except this instance. Nil or empty means unknown.
	voters atomic.Pointer[[]nodeid.Endpoint]

	disk        diskWatch
	diskReports diskReports

	key      atomic.Pointer[nodeid.Key] // key of the present incarnation; it determines the node ID
	leading  leading
	known    picture
	learning atomic.Bool

	handOvers handOvers // owned by the goroutine that calls unreachable

	busy      seldom // for the warning that the leader refuses queries
	files     seldom // for the warning that the directory cannot be checked without a file descriptor
	claims    seldom // for the warning that an instance sends another one's raft ID
	grantable grantable
	failed    atomic.Pointer[error]
	// The error in unread says why the log of this voter cannot be used. Nil means that the log can
	// be used or does not exist.
	unread atomic.Pointer[error]

	started   chan struct{} // closed when members is set or the start has failed
	leaving   chan struct{} // closed when the instance begins to leave
	leaveOnce sync.Once
	shutting  atomic.Bool // shut was called; further calls wait for shutDone
	shutDone  chan struct{}

	// binding is held from a change of the replica or the key until this change is announced. It is
	// never held across a wait.
	binding sync.Mutex
	ended   bool // guarded by binding; if true, bind accepts no replica

	goroutines goroutines
	open       context.Context // ends when Close is called
	closing    context.CancelFunc
}

// New returns an instance that has not started. Before Start, no other method may be called.
func New(config Config) *Instance {
	env := envOf(config.World)
	n := &Instance{
		config: config, env: env, logger: config.Logger,
		self: config.Self, started: make(chan struct{}), leaving: make(chan struct{}), shutDone: make(chan struct{}),
	}
	n.sessions.Most = maxOwnSessions
	n.open, n.closing = context.WithCancel(context.Background())
	n.disk.news = make(chan struct{}, 1)
	return n
}

// Start starts the instance. ctx limits only the start. Start returns when the instance listens,
// searches for the other instances and accepts requests. After an error nothing is left running.
func (n *Instance) Start(ctx context.Context) (err error) {
	listener, err := n.config.listen(n.env)
	if err != nil {
		return err
	}
	if err := n.prepare(ctx, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close(), n.closeDir())
	}
	n.trace = n.newTracer()
	n.grantable.begin(n.env.clock.Now())
	n.client = client.New(client.Config{
		Clock: n.env.clock, TTL: n.config.SessionTTL, Send: n.submit, Random: n.env.random, Logger: n.logger,
		Stays: n.config.Stays, StayIdle: n.config.StayIdle, Changed: n.phaseChanged,
		Watch: (&observer{node: n}).news,
	})
	n.sessions.First = n.client
	n.services = n.answers()
	port, err := transport.New(n.portConfig(listener))
	if err != nil {
		n.client.Close()
		return errors.Join(fmt.Errorf("mortise: %w", err), listener.Close(), n.closeDir(), n.trace.Close())
	}
	n.port = port
	if err := n.startCluster(outbound{port, port.Gossip()}); err != nil {
		return errors.Join(fmt.Errorf("mortise: %w", err), n.Close())
	}
	n.watchDisk()
	return nil
}

func (n *Instance) portConfig(listener net.Listener) transport.Config {
	c := transport.Config{
		Cluster: n.config.Cluster, Self: transport.Self{Key: *n.key.Load(), Addr: n.reach()}, Life: n.life,
		Random: n.env.random, Wall: n.env.wall,
		Listener: listener, Dial: n.env.dial, Handler: inbound{n}, Services: n.services, Logger: n.logger,
		Unable: n.unreachable, Rules: n.env.fingerprints,
	}
	if n.config.Source != nil {
		c.TLS = n.config.Source
	}
	return c
}

func (n *Instance) newTracer() *trace.Tracer {
	t := n.config.Trace
	t.History, t.Clock, t.Logger, t.Spawn = n.newHistory(), n.env.clock, n.logger, n.spawn
	return trace.New(t)
}

// newHistory returns the configured recorder, or nil. The times are those of the boot clock, plus
// an offset that is computed once from the wall clock. So a change of the wall clock does not
// affect a running history.
func (n *Instance) newHistory() *history.Recorder {
	if n.config.History == nil {
		return nil
	}
	origin := n.env.wall().UnixNano() - int64(n.env.clock.Now())
	return history.NewRecorder(history.RecorderConfig{
		Writer: n.config.History, Node: n.config.Name, Now: func() int64 { return origin + int64(n.env.clock.Now()) },
	})
}

func (n *Instance) prepare(ctx context.Context, listening net.Addr) (err error) {
	if n.address = listening.String(); !n.isMember() {
		if n.address, err = advertised(ctx, &n.config, listening, n.env); err != nil {
			return err
		}
	}
	if n.dir, err = openDir(&n.config, n.env.files); err != nil {
		return fmt.Errorf("mortise: %w", err)
	}
	key := nodeid.NewKey(n.env.random)
	if n.dir != nil {
		n.records = &records{dir: n.dir, during: n.during}
		stored, life, err := cluster.StoredKey(n.records)
		if err != nil {
			return fmt.Errorf("mortise: Config.Dir %q: %w", n.config.Dir, err)
		}
		if !stored.ID().IsZero() {
			key = stored
		}
		n.life = life + 1
	}
	n.key.Store(&key)
	return nil
}

func (n *Instance) closeDir() error {
	if n.dir == nil {
		return nil
	}
	return n.dir.Close()
}

func (n *Instance) startCluster(net cluster.Net) error {
	defer close(n.started)
	c, err := cluster.Start(n.clusterConfig(net))
	if err != nil {
		return err
	}
	members := membership(c)
	n.members.Store(&members)
	return nil
}

func (n *Instance) clusterConfig(net cluster.Net) cluster.Config {
	c := cluster.Config{
		Name: n.config.Name, Label: n.config.Cluster, Zone: n.config.Zone, Advertise: n.address, Key: *n.key.Load(),
		Join:     n.config.Join,
		Settings: n.config.Group.Founding(n.config.Alone),
		Rules:    n.env.rules, Net: net, Gossip: startGossip, Host: life{n},
		Clock: n.env.clock, Wall: n.env.wall, Resolve: n.env.resolve, Random: n.env.random, Logger: n.logger,
		Member: n.isMember(), JoinFunc: n.config.JoinFunc, Kubernetes: n.env.kubernetes,
		Awaited: n.awaited,
	}
	if n.records != nil {
		c.Records = n.records
		if n.env.records != nil {
			c.Records = n.env.records(n.records)
		}
	}
	return c
}

func startGossip(c gossip.Config, first gossip.Meta) (gossip.Gossip, error) {
	return swim.Start(c, first)
}

func (n *Instance) instance() nodeid.ID { return n.key.Load().ID() }

// cluster returns the membership, or nil until it is started.
func (n *Instance) cluster() membership {
	if c := n.members.Load(); c != nil {
		return *c
	}
	return nil
}

// group returns the cluster itself, which answers questions, or nil until it is started.
func (n *Instance) group() *cluster.Cluster {
	c, _ := n.cluster().(*cluster.Cluster)
	return c
}

// spawn runs f on a goroutine that Close waits for. After Close it does nothing and returns false.
func (n *Instance) spawn(f func()) bool { return n.goroutines.spawn(f) }

// Background runs f on a goroutine that Close waits for. The context of f ends when Close is
// called. After Close, Background does nothing and returns false.
func (n *Instance) Background(f func(context.Context)) bool {
	return n.spawn(func() { f(n.open) })
}

type goroutines struct {
	mu    sync.Mutex // guards ended and all.Go
	ended bool
	all   sync.WaitGroup
}

func (g *goroutines) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return false
	}
	g.all.Go(f)
	return true
}

func (g *goroutines) end() {
	g.mu.Lock()
	g.ended = true
	g.mu.Unlock()
	g.all.Wait()
}

// Err returns nil while the instance can be used, and afterwards client.ErrClosed or the failure
// that ended it.
func (n *Instance) Err() error {
	if err := n.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// isMember reports whether this instance has a member's secret, and so neither votes nor serves.
func (n *Instance) isMember() bool { return n.self.Tier == credentials.Member }

func (n *Instance) reach() string {
	if n.isMember() {
		return ""
	}
	return n.address
}
