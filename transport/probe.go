package transport

import (
	"net"
	"sync"
	"time"
)

// probe detects when a connection dies.
type probe struct {
	net.Conn
	gone chan struct{} // closed once reading has failed
	once sync.Once
	end  error // the read error that closed gone
}

const maxLinger = 100 * time.Millisecond // for the reader, after a write failed

// Read implements net.Conn.
func (c *probe) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.once.Do(func() { c.end = err; close(c.gone) })
	}
	return n, err
}

func (c *probe) ended() error {
	if isClosed(c.gone) {
		return c.end
	}
	return nil
}

// Write implements net.Conn. If it fails, the peer may have sent the reason before it closed the
// connection, as TLS 1.3 does about our certificate, and the reader should get it. If the reader
// gets nothing in time, Write closes the connection: gRPC would retry every new call on it without
// a pause.
func (c *probe) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		timer := time.NewTimer(maxLinger)
		defer timer.Stop()
		select {
		case <-c.gone:
		case <-timer.C:
			_ = c.Close()
		}
	}
	return n, err
}

// Close implements net.Conn.
func (c *probe) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}
