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

// Cluster is a set of complete nodes in this process, on a network in memory. All methods are safe
// for concurrent use. If a wait fails, the method ends the test with t.Fatal, so call methods that
// wait only on the test's own goroutine.
type Cluster struct {
	t       testing.TB
	options Options
	net     *memnet.Network
	label   string // profiler label of the goroutines of this cluster's nodes

	mu     sync.Mutex // guards the fields below and the fields of each place; never held during a wait
	places []*place
	cuts   map[route]bool // routes that the test has cut
	closed map[route]bool // routes that are closed in the network, by a cut or a pause
}

// Options change the defaults of New.
type Options struct {
	// Configure changes the configuration of node i before each of its starts. It receives the
	// default configuration: a SessionTTL of 2 s, no Grace, no encryption, and a Logger that writes
	// to the test's output. Configure may change every field except Bind, Advertise, Join and
	// JoinFunc. If it sets Secret or TLS, Insecure is cleared. Nil changes nothing.
	Configure func(i int, c *mortise.Config)

	// Patience is the time after which a waiting method fails the test. Zero means 1 min.
	Patience time.Duration

	// MayHold allows held locks and waiting calls at the end of the test. By default they fail the
	// test.
	MayHold bool
}

type place struct {
	host    string
	machine *machine

	node   *mortise.Node // the node that was last started at this address
	life   *life
	config mortise.Config
	paused bool
}

// Len returns the number of nodes, including killed ones.
//
//	for i := range cluster.Len() { go work(cluster.Node(i)) }
func (c *Cluster) Len() int { return len(c.places) }

// Node returns node i, counted from 0. Calls on a killed node return ErrClosed. After Start, Node
// returns the restarted node.
//
//	lock, err := cluster.Node(0).Lock(ctx, "orders/42")
func (c *Cluster) Node(i int) *mortise.Node {
	c.t.Helper()
	p := c.place(i)
	c.mu.Lock()
	defer c.mu.Unlock()
	return p.node
}

func (c *Cluster) place(i int) *place {
	c.t.Helper()
	if i < 0 || i >= len(c.places) {
		c.t.Fatalf("mortisetest: there is no node %d in a cluster of %d", i, len(c.places))
	}
	return c.places[i]
}

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

type route struct{ from, to int }
