package mortise

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
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/trace"
)

// The election timeout is 500 ms: longer than any stall of a healthy machine, and short enough that a failover stays below two seconds.
const (
	raftTick        = 25 * time.Millisecond
	electionTicks   = 20
	heartbeatTicks  = 4
	snapshotTimeout = time.Minute
)

// Node is one instance of the cluster. Make one with Start. All methods are safe for concurrent use.
type Node struct {
	config  Config
	env     env
	logger  *slog.Logger
	address string           // advertised
	self    credentials.Peer // what others see in its certificate; the root tier without TLS
	life    uint64           // counts the starts with one directory; zero in memory
	records *records         // nil: memory

	trace    *trace.Tracer // nil without observers
	dir      *storage.Dir  // nil: memory
	port     *transport.Port
	services transport.Services // what others may ask
	client   *client.Client
	own      ownSessions                      // of the user
	members  atomic.Pointer[cluster.Cluster]  // nil until it is started
	replica  atomic.Pointer[ownReplica]       // nil unless this instance votes
	voters   atomic.Pointer[[]transport.Peer] // of the group, but for this instance; nil or empty: none are known

	disk        diskWatch   // of Config.Dir
	diskReports diskReports // of other instances

	settled  atomic.Bool  // Ready has seen the voters settled, or has given up on that
	settleBy atomic.Int64 // clock.Time at which it gives up; 0: it has not been called

	key      atomic.Pointer[nodeid.Key] // of the present life; its ID is what this instance is called
	attached atomic.Bool                // its session is attached to a leader
	knowing  sync.Mutex                 // makes reading and saying whether there is a leader one step
	without  atomic.Int64               // clock.Time since which this instance knows of no leader, for people; 0: it knows one, or never did
	told     leading                    // guarded by knowing
	known    picture                    // of the members, as far as this instance knows without asking
	learning atomic.Bool                // it is about to ask how the replicas are called

	claims    seldom    // of raft IDs that are another's
	grantable grantable // for how long locks could be granted
	failed    atomic.Pointer[error]
	unread    atomic.Pointer[error] // why the log of this voter cannot be used; nil: it can, or this life has none

	started   chan struct{} // closed when members is set, or never will be
	standby   atomic.Int64  // calls that wait for a lock whose purpose makes long waits normal
	leaving   chan struct{} // closed when the node begins to leave
	leaveOnce sync.Once
	shutting  atomic.Bool // somebody has begun to shut; whoever comes second waits for shutDone
	shutDone  chan struct{}

	binding sync.Mutex // makes a change of replica or instance and saying so one step; never held across a wait
	ended   bool       // guarded by binding: no replica is taken any more

	mu         sync.Mutex // guards closed, and the counting up of goroutines
	closed     bool
	goroutines sync.WaitGroup
}

// Start starts a node. ctx bounds the start only. It returns when the node is up: it listens, looks for the others and takes requests,
// which wait until there is a leader; see Ready. An error names every mistake in the configuration at once, or says what of the
// machine it could not get; nothing is left running then. Close or Leave ends the node.
func Start(ctx context.Context, config Config) (*Node, error) { return start(ctx, config, envOf(ctx)) }

func start(ctx context.Context, config Config, env env) (*Node, error) {
	config = config.withDefaults()
	if err := config.validate(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("mortise: start: %w", context.Cause(ctx))
	}
	source, err := config.credentials(env.wall, env.random)
	if err != nil {
		return nil, fmt.Errorf("mortise: %w", err)
	}
	for _, text := range config.warnings {
		config.Logger.Warn(text)
	}
	self := credentials.Peer{Tier: credentials.Root}
	if source != nil {
		if own, err := source.Own(); err == nil { // else mayStart has let it pass
			self = own
		}
	}
	listener, err := config.listen(env, self)
	if err != nil {
		return nil, err
	}
	n := &Node{
		config: config.withoutSecrets(""), env: env, logger: config.Logger,
		self: self, started: make(chan struct{}), leaving: make(chan struct{}), shutDone: make(chan struct{}),
	}
	n.disk.news = make(chan struct{}, 1)
	if err := n.prepare(ctx, listener.Addr()); err != nil {
		return nil, errors.Join(err, listener.Close(), n.closeDir())
	}
	n.trace = newTracer(config, env, n.spawn)
	n.grantable.begin(env.clock.Now())
	n.client = client.New(client.Config{
		Clock: env.clock, TTL: config.SessionTTL, Send: n.submit, Random: env.random, Logger: n.logger, Changed: n.phaseChanged,
		Watch: (&witness{node: n}).news,
	})
	n.services = n.answers()
	settings := transport.Config{
		Cluster: config.Cluster, Self: transport.Self{Key: *n.key.Load(), Addr: n.reach()}, Life: n.life, Random: env.random, Wall: env.wall,
		Listener: listener, Dial: env.dial, Handler: inbound{n}, Services: n.services, Logger: n.logger,
	}
	if source != nil {
		settings.TLS = source
	}
	n.port, err = transport.New(settings)
	if err != nil {
		n.client.Close()
		return nil, errors.Join(fmt.Errorf("mortise: %w", err), listener.Close(), n.closeDir(), n.trace.Close())
	}
	if err := n.startCluster(); err != nil {
		return nil, errors.Join(fmt.Errorf("mortise: %w", err), n.Close())
	}
	n.watchDisk()
	if env.inside != nil {
		env.inside(n.inside())
	}
	return n, nil
}

// prepare finds out who this instance is: its address, its directory, and the ID that it has to have because of what is in there.
func (n *Node) prepare(ctx context.Context, listening net.Addr) (err error) {
	if n.address = listening.String(); !n.isMember() {
		if n.address, err = advertised(ctx, n.config, listening, n.env); err != nil {
			return err
		}
	}
	if n.dir, err = openDir(n.config, n.env.files); err != nil {
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

// closeDir closes the directory, if there is one.
func (n *Node) closeDir() error {
	if n.dir == nil {
		return nil
	}
	return n.dir.Close()
}

func (n *Node) startCluster() error {
	defer close(n.started)
	config := cluster.Config{
		Name: n.config.Name, Label: n.config.Cluster, Zone: n.config.Zone, Advertise: n.address, Key: *n.key.Load(), Join: n.config.Join,
		Settings: n.config.group().Founding(n.config.alone()),
		Rules:    lockfsm.RulesVersion, Net: outbound{n.port, n.port.Gossip()}, Host: life{n},
		Clock: n.env.clock, Wall: n.env.wall, Resolve: n.env.resolve, Random: n.env.random, Logger: n.logger,
		Member: n.isMember(), Services: n.env.srv, JoinFunc: n.config.JoinFunc, Changed: n.membersChanged(), Awaited: n.awaited,
	}
	if n.records != nil {
		config.Records = n.records
		if n.env.records != nil {
			config.Records = n.env.records(n.records)
		}
	}
	c, err := cluster.Start(config)
	if err != nil {
		return err
	}
	n.members.Store(c)
	return nil
}

// instance returns the ID of the present life.
func (n *Node) instance() nodeid.ID { return n.key.Load().ID() }

// cluster returns the cluster room, or nil before it is started.
func (n *Node) cluster() *cluster.Cluster { return n.members.Load() }

// spawn runs f on a goroutine that Close waits for. It returns false, and does not run f, once the node is closed.
func (n *Node) spawn(f func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return false
	}
	n.goroutines.Go(f)
	return true
}

// Err returns nil while the node can be used, and why not once it cannot: ErrClosed, or the failure that ended it.
func (n *Node) Err() error {
	if err := n.failed.Load(); err != nil {
		return *err
	}
	return nil
}
