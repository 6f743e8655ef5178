package mortisetest

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/memnet"
)

// Cluster is a set of whole nodes in this process, on a network in memory. New creates it. All
// methods are safe for concurrent use. Methods that wait end the test with t.Fatal if the wait
// fails, so call them on the test's own goroutine.
type Cluster struct {
	t       testing.TB
	options Options
	net     *memnet.Network
	label   string // identifies the goroutines of this cluster's nodes by their label

	mu     sync.Mutex // guards what follows, and the fields of places; never held across a wait
	places []*place
	cuts   map[route]bool // the directions that the test has cut
	closed map[route]bool // the directions that are closed in the network, by a cut or a pause
}

// Options change the defaults of New. The zero value is what New uses.
type Options struct {
	// Configure changes the configuration of node i before each of its starts. It receives the
	// configuration of New: a SessionTTL of 2 s, no Grace, no encryption, and a Logger that writes
	// to the test's output. It may set everything except Bind, Advertise, Join and JoinFunc, which
	// the network needs. Setting Secret or TLS clears Insecure. Default: none.
	Configure func(i int, c *mortise.Config)

	// Patience is how long a waiting method waits before it fails the test. Default: 1 min.
	Patience time.Duration

	// MayHold allows held locks and waiting calls at the end of the test. Default: false, which
	// fails the test.
	MayHold bool
}

// place is one node's part of the network, and its current node.
type place struct {
	host    string
	machine *machine

	node   *mortise.Node // the last one that was started
	life   *life
	config mortise.Config
	paused bool
}

// maxNodes bounds the size of a cluster.
const maxNodes = 256

// New starts a cluster of n nodes, 1 to 256, and waits until all are ready. They are closed at the
// end of the test, which fails if a lock is held then, a call waits for one, or a goroutine of a
// node remains. The nodes are configured with n as Config.Replicas, or, if there are more than 16,
// with the first three as Config.Founders; up to three of them vote. A cluster of one is a node
// without Join.
//
//	cluster := mortisetest.New(t, 3)
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	return NewWith(t, n, Options{})
}

// NewWith is New with options.
//
//	cluster := mortisetest.NewWith(t, 3, mortisetest.Options{
//		Configure: func(i int, c *mortise.Config) { c.SessionTTL = time.Second },
//	})
func NewWith(t testing.TB, n int, o Options) *Cluster {
	t.Helper()
	if n < 1 || n > maxNodes {
		t.Fatalf("mortisetest: a cluster of %d nodes: want 1 to %d", n, maxNodes)
	}
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	c := &Cluster{t: t, options: o, net: memnet.New(), cuts: map[route]bool{}, closed: map[route]bool{}}
	c.label = fmt.Sprintf("%s %p", t.Name(), c)
	for i := range n {
		c.places = append(c.places, &place{host: fmt.Sprintf("10.0.%d.%d", (i+1)/256, (i+1)%256),
			machine: newMachine()})
	}
	t.Cleanup(c.end)
	for i := range n {
		c.start(i)
	}
	c.Ready()
	return c
}

// Len returns the number of nodes, including killed ones.
//
//	for i := range cluster.Len() { go work(cluster.Node(i)) }
func (c *Cluster) Len() int { return len(c.places) }

// Node returns node i, counted from 0. Calls on a killed node return ErrClosed. After Start, Node
// returns the new one.
//
//	lock, err := cluster.Node(0).Lock(ctx, "orders/42")
func (c *Cluster) Node(i int) *mortise.Node {
	c.t.Helper()
	p := c.place(i)
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.node
}

// place returns the place of node i.
func (c *Cluster) place(i int) *place {
	c.t.Helper()
	if i < 0 || i >= len(c.places) {
		c.t.Fatalf("mortisetest: there is no node %d in a cluster of %d", i, len(c.places))
	}
	return c.places[i]
}

// config returns the configuration of node i.
func (c *Cluster) config(i int) mortise.Config {
	c.t.Helper()
	own := mortise.Config{
		Name: fmt.Sprintf("node-%d", i), Bind: c.places[i].address(), SessionTTL: 2 * time.Second, Grace: -1,
		Insecure: true,
		Logger:   slog.New(slog.NewTextHandler(c.t.Output(), nil)).With("node", i),
	}
	if len(c.places) > 1 {
		if own.Replicas = len(c.places); own.Replicas > 16 {
			own.Replicas, own.Founders = 0, []string{"node-0", "node-1", "node-2"}
		}
		for _, p := range c.places {
			own.Join = append(own.Join, p.address())
		}
	}
	if c.options.Configure == nil {
		return own
	}
	changed := own
	c.options.Configure(i, &changed)
	if changed.Bind != own.Bind || changed.Advertise != "" || !slices.Equal(changed.Join, own.Join) ||
		changed.JoinFunc != nil {
		c.t.Fatalf("mortisetest: Options.Configure of node %d has set Bind, Advertise, Join or JoinFunc: leave them, "+
			"the nodes find each other on a network in memory", i)
	}
	if changed.Logger == nil {
		changed.Logger = slog.Default()
	}
	if changed.Secret != "" || changed.TLS != nil || changed.TLSFiles != (mortise.TLSFiles{}) {
		changed.Insecure = false
	}
	return changed
}

func (p *place) address() string { return p.host + ":7947" }
