package transport

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/fair"
)

// listener passes accepted connections to gRPC, and can close the connection of a call. Only
// closing the connection cancels a call that is blocked in sending.
//
// A connection belongs to a stranger until its hello is verified. If there are too many strangers,
// the listener closes the oldest connection from which this node is waiting for data. An instance
// proves its key within milliseconds, so a flood does not displace it. If all strangers are waiting
// for this node, as after a failover, the listener closes the new connection.
type listener struct {
	net.Listener
	limit, strangers int
	patience         time.Duration // how long a connection may belong to a stranger
	guard            *guard
	turns            *turns
	secured          bool
	failing          failing

	mu      sync.Mutex // guards all below
	conns   map[*accepted]struct{}
	waiting []*accepted // strangers in the order of arrival, and some former strangers
	unknown int
	closed  bool // set by closeAll, because new connections would delay the Stop of gRPC
}

func newListener(c *Config) *listener {
	return &listener{
		Listener: c.Listener, limit: c.Conns, strangers: c.Strangers, patience: 2 * c.DialTimeout,
		conns:   map[*accepted]struct{}{},
		turns:   &turns{atOnce: runtime.GOMAXPROCS(0), limit: c.DialTimeout, hosts: newHosts()},
		secured: c.TLS != nil,
	}
}

// Accept implements net.Listener. It closes a new connection immediately if there are too many.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			l.failing.failed(err)
			return nil, err
		}
		l.failing.accepted()
		repeatEvenly(conn)
		c := &accepted{Conn: conn, listener: l, guard: l.guard, gone: make(chan struct{}), stranger: true}
		if c.turn, err = l.turns.arrive(conn.RemoteAddr(), c.gone); err != nil {
			if l.failing.tell != nil {
				l.failing.tell.warn("transport: closed a connection without a handshake: its host opens too many, or too "+
					"many are refused; find the programs there that connect again and again", "from", conn.RemoteAddr())
			}
			conn.Close()
			continue
		}
		oldest, full := l.admit(c)
		if oldest != nil {
			oldest.Close()
		}
		if !full {
			return c, nil
		}
		conn.Close()
	}
}

// admit registers a connection unless there are too many. If oldest is not nil, the caller must
// close it. If full is true, the caller must close c.
func (l *listener) admit(c *accepted) (oldest *accepted, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || len(l.conns) >= l.limit {
		return nil, true
	}
	if l.unknown >= l.strangers {
		if oldest = l.silent(); oldest == nil {
			return nil, true
		}
		oldest.known()
	}
	if len(l.waiting) > 2*l.unknown+64 { // most of the listed connections no longer belong to strangers
		kept := make([]*accepted, 0, l.unknown+64)
		for _, w := range l.waiting {
			if w.stranger {
				kept = append(kept, w)
			}
		}
		l.waiting = kept
	}
	l.conns[c] = struct{}{}
	l.waiting = append(l.waiting, c)
	l.unknown++
	c.timer = time.AfterFunc(l.patience, func() { c.Close() })
	return oldest, false
}

// silent returns the oldest stranger from which this node is waiting for data, or nil. The caller
// holds mu.
func (l *listener) silent() *accepted {
	for _, w := range l.waiting {
		if w.stranger && !w.turn.busy.Load() {
			return w
		}
	}
	return nil
}

func (l *listener) count() (all, strangers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.unknown
}

// closeAll also closes connections that gRPC has not accepted yet.
func (l *listener) closeAll() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closeEach(func(*accepted) bool { return true })
}

func (l *listener) closeCalls() {
	l.closeEach(func(c *accepted) bool { return c.calls })
}

func (l *listener) closeEach(of func(*accepted) bool) {
	l.mu.Lock()
	all := make([]*accepted, 0, len(l.conns))
	for c := range l.conns {
		if of(c) {
			all = append(all, c)
		}
	}
	l.mu.Unlock()
	for _, c := range all {
		c.Close()
	}
}

type accepted struct {
	net.Conn
	listener *listener
	guard    *guard
	once     sync.Once
	gone     chan struct{} // closed with the connection
	turn     *turn         // used by the handshake's goroutine; others only read turn.busy
	began    bool          // a byte has arrived; used only by the handshake's goroutine
	shook    bool          // the handshake has ended; used only by the connection's user
	tally    *tallied      // set before the first call
	owner    fair.Identity // instance that opened the connection; set before the first call

	// Guarded by listener.mu:
	stranger bool
	calls    bool // the connection carries calls, not a link
	timer    *time.Timer
	over     bool   // the connection is closed
	giveBack func() // returns its place among the connections of its secret; nil if it has none
}

// RemoteAddr implements net.Conn. acceptedOn finds the connection by the returned address.
func (c *accepted) RemoteAddr() net.Addr { return acceptedAddr{c.Conn.RemoteAddr(), c} }

func (c *accepted) known() {
	if c.stranger {
		c.stranger = false
		c.listener.unknown--
		c.timer.Stop()
	}
}

func (c *accepted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.mu.Lock()
		c.known()
		delete(c.listener.conns, c)
		c.over = true
		giveBack := c.giveBack
		c.listener.mu.Unlock()
		close(c.gone)
		c.guard.remove(c)
		if giveBack != nil {
			giveBack()
		}
	})
	return err
}

type acceptedAddr struct {
	net.Addr
	conn *accepted
}

func acceptedOn(addr net.Addr) (*accepted, bool) {
	remembers, ok := addr.(acceptedAddr)
	return remembers.conn, ok
}

func (c *accepted) proven() {
	c.listener.turns.proved(hostOf(c.Conn.RemoteAddr()))
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.known()
}

// holds makes Close call giveBack. If the connection is already closed, holds calls it.
func (c *accepted) holds(giveBack func()) {
	c.listener.mu.Lock()
	over := c.over
	c.giveBack = giveBack
	c.listener.mu.Unlock()
	if over {
		giveBack()
	}
}

func (c *accepted) serves() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.calls = true
}

func (c *accepted) isGone() bool { return isClosed(c.gone) }

// worked reports whether a failed handshake was work for this node that the dialer has caused.
func (c *accepted) worked(err error) bool {
	return c.began && !errors.Is(err, errPaced) && !c.turn.outOfTime(err)
}

// Read implements net.Conn. Until the handshake has ended, Read waits for a turn after each read.
func (c *accepted) Read(b []byte) (int, error) {
	if c.shook {
		return c.Conn.Read(b)
	}
	c.turn.give()
	n, err := c.Conn.Read(b)
	if n > 0 && !c.began {
		c.began = true
		c.hint(b[0])
	}
	if n > 0 {
		if err := c.turn.take(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Write implements net.Conn. Until the handshake has ended, Write first ends the turn, because
// writing may block.
func (c *accepted) Write(b []byte) (int, error) {
	if !c.shook {
		c.turn.give()
	}
	return c.Conn.Write(b)
}

func (c *accepted) shaken() {
	if !c.shook {
		c.turn.end()
		c.shook = true
	}
}

// noTLS is the fatal TLS alert handshake_failure (RFC 8446).
const noTLS = "\x15\x03\x03\x00\x02\x02\x28"

// hint answers a dialer whose first byte shows that only one side has TLS. A dialer without TLS
// gets an alert, and a dialer with TLS gets our preface. If the connection ended without an answer,
// the dialer would not learn the reason.
func (c *accepted) hint(first byte) {
	switch {
	case c.listener.secured && first == linkPreface[0]:
		_, _ = c.Write([]byte(noTLS))
	case !c.listener.secured && first == tlsHandshake:
		_, _ = c.Write([]byte(linkPreface))
	}
}
