package transport

import (
	"context"
	"net"
	"sync"

	"google.golang.org/grpc/peer"
)

// listener hands gRPC connections that we can find again from inside a call and close: a server cannot cancel a call of its own in any
// other way while it is blocked in sending.
type listener struct {
	net.Listener
	limit int

	mu    sync.Mutex
	conns map[*accepted]struct{}
}

func newListener(l net.Listener, limit int) *listener {
	return &listener{Listener: l, limit: limit, conns: map[*accepted]struct{}{}}
}

// Accept is net.Listener's. Above the limit connections are closed at once.
func (l *listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c := &accepted{Conn: conn, listener: l, gone: make(chan struct{})}
		l.mu.Lock()
		full := len(l.conns) >= l.limit
		if !full {
			l.conns[c] = struct{}{}
		}
		l.mu.Unlock()
		if !full {
			return c, nil
		}
		conn.Close()
	}
}

func (l *listener) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// closeAll closes every accepted connection, also those that gRPC has not taken yet.
func (l *listener) closeAll() {
	l.mu.Lock()
	all := make([]*accepted, 0, len(l.conns))
	for c := range l.conns {
		all = append(all, c)
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
	once     sync.Once
	gone     chan struct{} // closed with the connection
}

// RemoteAddr is net.Conn's; the address remembers the connection, and so do the TLS connection made on it and the calls that come in.
func (c *accepted) RemoteAddr() net.Addr { return acceptedAddr{c.Conn.RemoteAddr(), c} }

// Close is net.Conn's.
func (c *accepted) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.listener.mu.Lock()
		delete(c.listener.conns, c)
		c.listener.mu.Unlock()
		close(c.gone)
	})
	return err
}

type acceptedAddr struct {
	net.Addr
	conn *accepted
}

// acceptedOf finds the connection under an incoming call.
func acceptedOf(ctx context.Context) (*accepted, bool) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return nil, false
	}
	addr, ok := p.Addr.(acceptedAddr)
	return addr.conn, ok
}
