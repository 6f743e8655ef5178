package transport

import (
	"context"
	"net"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/peer"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// listener hands gRPC connections that we can find again from inside a call and close: a server
// cannot cancel a call of its own in any other way while it is blocked in sending.
//
// A connection is a stranger's until a hello on it was verified. gRPC gives a handshake, and so the
// hello, the dial timeout; the limit here is behind that one. The number of strangers is bounded
// too. When there are too many, the oldest of those that keep this node waiting is closed: an
// instance of the cluster proves its key within milliseconds, so a flood of others does not keep it
// out. If all of them wait for their turn, the new one is closed: after a failover thousands of
// instances come at once, and each that is displaced comes again.
type listener struct {
	net.Listener
	limit, strangers int
	patience         time.Duration // with strangers
	guard            *guard
	turns            *turns
	secured          bool // with TLS

	mu      sync.Mutex // guards all below
	conns   map[*accepted]struct{}
	waiting []*accepted // strangers, in the order in which they came, and some that are none any more
	unknown int         // strangers
	closed  bool        // by closeAll: whoever comes now would only hold up gRPC's Stop
}

func newListener(c *Config) *listener {
	return &listener{
		Listener: c.Listener, limit: c.Conns, strangers: c.Strangers, patience: 2 * c.DialTimeout,
		conns: map[*accepted]struct{}{},
		turns: &turns{most: runtime.GOMAXPROCS(0), limit: c.DialTimeout}, secured: c.TLS != nil,
	}
}

// Accept is net.Listener's. Above the limit connections are closed at once.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		repeatEvenly(conn)
		c := &accepted{Conn: conn, listener: l, guard: l.guard, gone: make(chan struct{}), stranger: true}
		c.turn = l.turns.begin(c)
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

// admit enters a connection, unless there are too many, and returns the stranger that has to make
// room.
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
		oldest.known() // not counted any more: it is about to be closed
	}
	if len(l.waiting) > 2*l.unknown+64 { // mostly such that are none any more
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

// silent returns the stranger that has come first among those whose next word is awaited; nil if
// this node itself is what all of them wait for. The caller holds mu.
func (l *listener) silent() *accepted {
	for _, w := range l.waiting {
		if w.stranger && !w.turn.busy.Load() {
			return w
		}
	}
	return nil
}

// count returns how many connections there are, and how many of them strangers'.
func (l *listener) count() (all, strangers int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.unknown
}

// closeAll closes every accepted connection, also those that gRPC has not taken yet.
func (l *listener) closeAll() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closeEach(func(*accepted) bool { return true })
}

// closeCalls closes the connections on which calls come.
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

// accepted is a connection that somebody opened to us.
type accepted struct {
	net.Conn
	listener *listener
	guard    *guard
	once     sync.Once
	gone     chan struct{} // closed with the connection
	turn     *turn         // of the handshake, which alone uses it, but for busy
	began    bool          // a byte has come; of the same goroutine
	shook    bool          // the handshake is over; of the one goroutine that uses the connection
	owner    Instance      // that has proved its key here; set before the first call, zero until then

	// Guarded by listener.mu:
	stranger bool
	calls    bool // it carries calls, not a link
	timer    *time.Timer
}

// RemoteAddr is net.Conn's; the address remembers the connection, and so do the TLS connection made
// on it and the calls that come in.
func (c *accepted) RemoteAddr() net.Addr { return acceptedAddr{c.Conn.RemoteAddr(), c} }

// known says that whoever is there is one of us. The caller holds listener.mu.
func (c *accepted) known() {
	if c.stranger {
		c.stranger = false
		c.listener.unknown--
		c.timer.Stop()
	}
}

// Close is net.Conn's.
func (c *accepted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.mu.Lock()
		c.known()
		delete(c.listener.conns, c)
		c.listener.mu.Unlock()
		close(c.gone)
		c.guard.remove(c)
	})
	return err
}

type acceptedAddr struct {
	net.Addr
	conn *accepted
}

// acceptedOn finds the connection that a remote address remembers.
func acceptedOn(addr net.Addr) (*accepted, bool) {
	remembers, ok := addr.(acceptedAddr)
	return remembers.conn, ok
}

// proven says that the peer has proved to be an instance of the cluster.
func (c *accepted) proven() {
	c.listener.turns.proved(hostOf(c.Conn.RemoteAddr()))
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.known()
}

// serves says that calls come on the connection.
func (c *accepted) serves() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.calls = true
}

// caller returns who has opened the connection under an incoming call, and why the call is refused;
// nil means that it is not.
func (p *Port) caller(ctx context.Context) (Identity, *wire.Refusal) {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "no connection"}
	}
	met, ok := from.AuthInfo.(greeted)
	if !ok || met.self != p.self.Load().Instance() {
		return Identity{}, &wire.Refusal{Reason: wire.Refusal_FAILED,
			Text: "this instance has begun a new life: connect again"}
	}
	return met.peer, nil
}
