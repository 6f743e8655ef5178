package transport

import (
	"net"
	"sync"
	"time"
)

type probe struct {
	net.Conn
	gone chan struct{} // closed when a read has failed
	once sync.Once
	end  error
}

const maxLinger = 100 * time.Millisecond // time that a failed write waits for the reading goroutine

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

// Write implements net.Conn. If writing fails, Write waits until the reading goroutine has read the
// peer's reason. After maxLinger it closes the connection; otherwise gRPC would retry each new call
// on it without a pause.
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

func (c *probe) Close() error {
	c.once.Do(func() { close(c.gone) })
	return c.Conn.Close()
}
