package instance

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/internal/credentials"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/internal/trace"
	"github.com/mortise-lock/mortise/raftlog/storage"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

// Instance is one running instance. All methods are safe for concurrent use.
type Instance struct {
	config  Config
	env     env
	logger  *slog.Logger
	address string
	self    credentials.Peer // what the certificate proves; the root tier if TLS is off
	begins  beginning
	records *records // nil in memory

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

	warnings  warnings
	grantable grantable
	// The error in unread says why the log of this voter cannot be used. Nil means that the log can
	// be used or does not exist.
	unread atomic.Pointer[error]

	started    chan struct{} // closed when members is set or the start has failed
	ending     ending
	binding    binding
	goroutines goroutines
}

// closeDir closes the directory or the run directory, if there is one.
func (n *Instance) closeDir() error {
	switch {
	case n.dir != nil:
		return n.dir.Close()
	case n.begins.run != nil:
		return n.begins.run.dir.Close()
	}
	return nil
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
	return n.spawn(func() { f(n.goroutines.open) })
}

// goroutines are those that the end of an instance waits for.
type goroutines struct {
	mu    sync.Mutex // guards ended and all.Go
	ended bool
	all   sync.WaitGroup

	open    context.Context // ends when Close is called
	closing context.CancelFunc
}

func (g *goroutines) begin() { g.open, g.closing = context.WithCancel(context.Background()) }

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

// ending is how far the end of an instance has come. All methods are safe for concurrent use.
type ending struct {
	leaving   chan struct{} // closed when the instance begins to leave
	leaveOnce sync.Once
	shutting  atomic.Bool   // the parts are being stopped; further calls wait for shut
	shut      chan struct{} // closed when the parts have stopped
	why       atomic.Pointer[error]
}

func (e *ending) leave() { e.leaveOnce.Do(func() { close(e.leaving) }) }

func (e *ending) isLeaving() bool {
	select {
	case <-e.leaving:
		return true
	default:
		return false
	}
}

// end ends the use of the instance, and reports whether this was the first call.
func (e *ending) end(why error) bool { return e.why.CompareAndSwap(nil, &why) }

func (e *ending) err() error {
	if why := e.why.Load(); why != nil {
		return *why
	}
	return nil
}

// binding is held from a change of the replica or the key until this change is announced. It is
// never held across a wait.
type binding struct {
	sync.Mutex
	ended bool // bind accepts no replica
}

// Err returns nil while the instance can be used, and afterwards client.ErrClosed or the failure
// that ended it.
func (n *Instance) Err() error { return n.ending.err() }

// isMember reports whether this instance has a member's secret, and so neither votes nor serves.
func (n *Instance) isMember() bool { return n.self.Tier == credentials.Member }

func (n *Instance) reach() string {
	if n.isMember() {
		return ""
	}
	return n.address
}

// linked reports whether instance is this instance, or is connected to it by a stream.
func (n *Instance) linked(instance nodeid.ID) bool {
	return instance == n.instance() || n.port.Linked(instance)
}

// view returns what others may read of the replica, or nil if this instance has none.
func (n *Instance) view() *replica.View {
	if r := n.replica.Load(); r != nil {
		return r.View
	}
	return nil
}

// tell queues the call of a hook, because it runs on the owner goroutines of other packages.
func (n *Instance) tell(e NodeEvent) {
	if h := n.config.Hooks; h != nil && h.Node != nil {
		n.trace.Later(func() { h.Node(e) })
	}
}
