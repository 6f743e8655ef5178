package transport

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// probe watches the first bytes that come from the other side, and when the connection dies.
type probe struct {
	net.Conn
	gone  chan struct{} // closed once nothing can be read any more
	once  sync.Once
	end   error  // the read error that closed gone
	head  []byte // the first bytes, of the one goroutine that reads
	alien atomic.Bool
}

const (
	frameHead = 9                      // bytes of an HTTP/2 frame header
	lastWords = 100 * time.Millisecond // for the reader, after a write failed
)

// Read is net.Conn's.
func (c *probe) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if len(c.head) < frameHead && n > 0 {
		c.head = append(c.head, b[:min(n, frameHead-len(c.head))]...)
		if !startsHTTP2(c.head) {
			c.alien.Store(true)
		}
	}
	if err != nil {
		if refusedTLS(err) {
			c.alien.Store(true)
		}
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

// Write is net.Conn's. When it fails, the other side may have said why it hung up, as TLS 1.3 does about our certificate, and the reader
// should find it. A reader that finds nothing is ended: gRPC leaves it to the reader to end the connection, and until then tries every
// new call on it again and again without a pause.
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

// foreign reports whether what came cannot be from a mortise that accepts us.
func (c *probe) foreign() bool { return c.alien.Load() }

// startsHTTP2 reports whether head, a prefix of what a server sends first, can be that of an HTTP/2 server: a SETTINGS frame.
func startsHTTP2(head []byte) bool {
	if len(head) > 0 && head[0] != 0 { // SETTINGS of 64 KiB or more
		return false
	}
	if len(head) > 3 && head[3] != 4 {
		return false
	}
	for i := 5; i < len(head); i++ {
		if head[i] != 0 { // stream 0
			return false
		}
	}
	return true
}
