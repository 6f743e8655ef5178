package transport

import (
	"net"
	"sync"
)

// deafAddr is what a deaf listener gives as its address. It has the form that others expect of one; nothing listens there.
var deafAddr = net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}

// deaf is a listener without a socket.
type deaf struct {
	once   sync.Once
	closed chan struct{}
}

// Deaf returns a listener for a [Config] of a Port that nothing can connect to: it opens no socket, and its Accept waits until it is closed.
func Deaf() net.Listener { return &deaf{closed: make(chan struct{})} }

func (d *deaf) Accept() (net.Conn, error) {
	<-d.closed
	return nil, net.ErrClosed
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

func (d *deaf) Addr() net.Addr { a := deafAddr; return &a }
