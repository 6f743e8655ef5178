package mortisetest

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/memnet"
	"github.com/mortise-lock/mortise/internal/outside"
)

const maxNodes = 256

// New starts a cluster of n nodes, 1 to 256, and waits until all nodes are ready. It closes the
// nodes at the end of the test. The test fails if at its end a lock is held, a call waits for a
// lock, or a goroutine of a node remains. Config.Replicas is n. With more than 16 nodes, New sets
// Config.Founders to the first three nodes instead. Up to three nodes vote. In a cluster of one,
// the node has no Config.Join.
//
//	cluster := mortisetest.New(t, 3)
func New(t testing.TB, n int) *Cluster {
	t.Helper()
	return NewWith(t, n, Options{})
}

// NewWith is like New, but with options.
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

// Start restarts node i, which was killed, was closed or has left. The new node has the same name
// and address. Start returns the node without waiting until it is ready. Without Config.Dir the
// node is a new instance, like a restarted process.
//
//	cluster.Start(1)
func (c *Cluster) Start(i int) *mortise.Node {
	c.t.Helper()
	if old := c.Node(i); old.Err() == nil {
		c.t.Fatalf("mortisetest: Start: node %d is running: call Kill first", i)
	} else if err := old.Close(); err != nil { // the node may have failed, or may still be ending
		c.t.Errorf("mortisetest: close node %d: %v", i, err)
	}
	return c.start(i)
}

func (c *Cluster) start(i int) *mortise.Node {
	c.t.Helper()
	p, config := c.places[i], c.config(i)
	l := &life{dial: c.net.Dialer(p.host)}
	config.Logger = slog.New(quiet{config.Logger.Handler(), l})
	ctx := outside.In(c.t.Context(), outside.World{
		Listen: c.net.Listen, Dial: l.Dial, Clock: p.machine,
		Resolve: func(_ context.Context, host string) ([]string, error) { return []string{host}, nil },
	})
	var node *mortise.Node
	var err error
	pprof.Do(ctx, pprof.Labels(label, c.label), func(ctx context.Context) { node, err = mortise.Start(ctx, config) })
	if err != nil {
		c.t.Fatalf("mortisetest: start node %d: %v", i, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.node, p.life, p.config = node, l, config
	return node
}

// Kill ends node i as kill -9 ends a process: its connections are reset, and its session is not
// closed. Its locks stay taken until its session expires, at most one SessionTTL later. The code of
// the test continues to run, and calls on the node return ErrClosed.
//
//	cluster.Kill(1)
func (c *Cluster) Kill(i int) {
	c.t.Helper()
	p := c.place(i)
	c.mu.Lock()
	node, l := p.node, p.life
	p.paused = false
	c.mu.Unlock()
	if node.Err() != nil {
		c.t.Fatalf("mortisetest: Kill: node %d is not running: %v", i, node.Err())
	}
	l.over.Store(true)
	c.net.Crash(p.host)
	if err := node.Close(); err != nil {
		c.t.Errorf("mortisetest: close node %d: %v", i, err)
	}
	p.machine.hide(false)
	c.rewire()
}
