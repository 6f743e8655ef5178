package main

import (
	"context"
	"errors"
	"net"
	"sync"
)

// This file cuts an instance of dev off from the others without rights over the machine's network:
// the instance's own connections hold back every byte in both directions, as a network does that
// drops all packets. No connection ends during the cut, since an end could not cross it either.

// cutNetwork is the network of one instance. It is safe for concurrent use.
type cutNetwork struct {
	mu   sync.Mutex    // guards open
	open chan struct{} // closed while the instance is not cut off
}

func newCutNetwork() *cutNetwork {
	n := &cutNetwork{open: make(chan struct{})}
	close(n.open)
	return n
}

// set cuts the instance off, or heals it.
func (n *cutNetwork) set(cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	select {
	case <-n.open:
		if cut {
			n.open = make(chan struct{})
		}
	default:
		if !cut {
			close(n.open)
		}
	}
}

// whole returns a channel that is closed when the instance is not cut off.
func (n *cutNetwork) whole() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.open
}

func (n *cutNetwork) listen(address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return cutListener{l, n}, nil
}

func (n *cutNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	select {
	case <-n.whole():
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return n.through(conn), nil
}

type cutListener struct {
	net.Listener
	network *cutNetwork
}

func (l cutListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.network.through(conn), nil
}

// cutConn is the instance's end of a connection. Its deadlines are those of a pipe, so they also
// end calls that wait during a cut.
type cutConn struct {
	net.Conn // a pipe
	socket   net.Conn
}

func (c cutConn) LocalAddr() net.Addr  { return c.socket.LocalAddr() }
func (c cutConn) RemoteAddr() net.Addr { return c.socket.RemoteAddr() }

// through returns a connection whose bytes pass through the network. Its goroutines end when both
// ends are closed and the instance is not cut off.
func (n *cutNetwork) through(socket net.Conn) net.Conn {
	own, inner := net.Pipe()
	go n.pass(socket, inner)
	go n.pass(inner, socket)
	return cutConn{own, socket}
}

// pass copies what from sends, and its end.
func (n *cutNetwork) pass(to, from net.Conn) {
	buf := make([]byte, 32<<10)
	for err := error(nil); err == nil; {
		var count int
		count, err = from.Read(buf)
		<-n.whole()
		if count > 0 {
			_, failed := to.Write(buf[:count])
			err = errors.Join(err, failed)
		}
	}
	_ = to.Close() // an end may have been closed before
	_ = from.Close()
}
