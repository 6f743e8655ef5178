package transport

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	recheckEvery = time.Minute // time within which a connection ends after its certificate is revoked
	recheckShare = 100         // checking uses at most 1/recheckShare of one processor
)

// guard ends connections whose certificates have expired or are no longer accepted. One goroutine
// of the port checks all connections.
type guard struct {
	config  *Config
	notices *notices
	wake    chan struct{} // capacity 1; signals that a certificate expires before the next check

	mu    sync.Mutex // guards all below; never held while a certificate is checked
	conns map[net.Conn]guarded
	next  time.Time // zero during a check
}

type guarded struct {
	addr   string
	secure *tls.ConnectionState
	until  time.Time
}

func newGuard(c *Config, n *notices) *guard {
	return &guard{config: c, notices: n, wake: make(chan struct{}, 1), conns: map[net.Conn]guarded{}}
}

type guardedConn struct {
	net.Conn
	guard *guard
	once  sync.Once
	gone  atomic.Bool
}

func (c *guardedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.gone.Store(true)
		c.guard.remove(c)
	})
	return err
}

func (c *guardedConn) isGone() bool { return c.gone.Load() }

func (g *guard) add(conn interface {
	net.Conn
	isGone() bool
}, addr string, secure *tls.ConnectionState, until time.Time) {
	if g == nil {
		return
	}
	if until.IsZero() {
		until = time.Unix(1<<40, 0)
	}
	g.mu.Lock()
	g.conns[conn] = guarded{addr, secure, until}
	sooner := !g.next.IsZero() && until.Before(g.next)
	g.mu.Unlock()
	if conn.isGone() { // closed before it was registered
		g.remove(conn)
	}
	if sooner {
		select {
		case g.wake <- struct{}{}:
		default:
		}
	}
}

func (g *guard) remove(conn net.Conn) {
	if g == nil { // in tests, a listener may belong to no Port
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, conn)
}

func (g *guard) run(ctx context.Context) {
	timer := time.NewTimer(recheckEvery)
	defer timer.Stop()
	due := time.Now().Add(recheckEvery)
	for {
		pause := g.arm(time.Until(due))
		timer.Reset(pause)
		select {
		case <-timer.C:
		case <-g.wake:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		g.look(ctx, !began.Before(due))
		if !began.Before(due) {
			due = time.Now().Add(max(recheckEvery, recheckShare*time.Since(began)))
		}
	}
}

func (g *guard) arm(pause time.Duration) time.Duration {
	now := g.config.Wall()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		pause = min(pause, c.until.Sub(now))
	}
	pause = max(pause, time.Millisecond)
	g.next = now.Add(pause)
	return pause
}

// look ends the connections whose certificates have expired. If all is true, it also ends the
// connections whose certificates are no longer accepted.
func (g *guard) look(ctx context.Context, all bool) {
	now := g.config.Wall()
	g.mu.Lock()
	g.next = time.Time{}
	conns := make(map[net.Conn]guarded, len(g.conns))
	for conn, c := range g.conns {
		if all || !now.Before(c.until) {
			conns[conn] = c
		}
	}
	g.mu.Unlock()
	for conn, c := range conns {
		switch {
		case ctx.Err() != nil:
			return
		case !now.Before(c.until):
			g.config.Logger.Info("transport: ended a connection: a certificate of the peer ends now", "addr",
				c.addr, "until", c.until)
		default:
			err := g.config.TLS.Recheck(*c.secure)
			if err == nil {
				continue
			}
			g.notices.warn("transport: ended a connection: its certificate is no longer accepted", "addr",
				c.addr, "why", err)
		}
		conn.Close()
	}
}
