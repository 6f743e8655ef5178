package transport

import (
	"net"
	"sync"
	"time"
)

// probe watches when a connection dies.
type probe struct {
	net.Conn
	gone chan struct{} // closed once nothing can be read any more
	once sync.Once
	end  error // the read error that closed gone
}

const lastWords = 100 * time.Millisecond // for the reader, after a write failed

// Read is net.Conn's.
func (c *probe) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.once.Do(func() { c.end = err; close(c.gone) })
	}
	return n, err
}

// ended says how the connection ended, if the other side ended it.
func (c *probe) ended() error {
	if isClosed(c.gone) {
		return c.end
	}
	return nil
}

// Write is net.Conn's. When it fails, the other side may have said why it hung up, as TLS 1.3 does
// about our certificate, and the reader should find it. A reader that finds nothing is ended: gRPC
// leaves it to the reader to end the connection, and until then tries every new call on it again
// and again without a pause.
func (c *probe) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	if err != nil {
		timer := time.NewTimer(lastWords)
		defer timer.Stop()
		select {
		case <-c.gone:
		case <-timer.C:
			_ = c.Close()
		}
	}
	return n, err
}

// Close is net.Conn's.
func (c *probe) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}
