package mortisetest

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"syscall"
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
