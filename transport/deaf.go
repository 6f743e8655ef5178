package transport

import (
	"net"
	"sync"
)

type deaf struct {
	once   sync.Once
	closed chan struct{}
}

// Deaf returns a listener for the [Config] of a Port to which no process can connect. It opens no
// socket, and its Accept blocks until the listener is closed.
func Deaf() net.Listener { return &deaf{closed: make(chan struct{})} }

func (d *deaf) Accept() (net.Conn, error) {
	<-d.closed
	return nil, net.ErrClosed
}

func (d *deaf) Close() error {
	d.once.Do(func() { close(d.closed) })
	return nil
}

// Addr returns an address at which no process listens.
func (d *deaf) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
