package mortisetest

import (
	"context"
	"log/slog"
	"net"
	"runtime/pprof"
	"sync/atomic"
	"syscall"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/outside"
)

// life is the network access of a node from one start of the node to its end. Kill ends this access
// before it closes the node, because a killed process sends nothing more.
type life struct {
	over atomic.Bool
	dial func(ctx context.Context, address string) (net.Conn, error)
}

// Dial connects to address. It fails after Kill.
func (l *life) Dial(ctx context.Context, address string) (net.Conn, error) {
	conn, err := l.dial(ctx, address)
	if err == nil && l.over.Load() { // check after dialing, because Kill resets only connections that exist
		_ = conn.Close()
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENETDOWN}
	}
	return conn, err
}

type quiet struct {
	slog.Handler
	life *life
}

// Enabled implements slog.Handler.
func (q quiet) Enabled(ctx context.Context, level slog.Level) bool {
	return !q.life.over.Load() && q.Handler.Enabled(ctx, level)
}

// WithAttrs implements slog.Handler.
func (q quiet) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quiet{q.Handler.WithAttrs(attrs), q.life}
}

// WithGroup implements slog.Handler.
func (q quiet) WithGroup(name string) slog.Handler { return quiet{q.Handler.WithGroup(name), q.life} }

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
