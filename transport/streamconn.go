package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// streamConn is a net.Conn that uses a gRPC stream. Only its two goroutines, which run the methods
// read and write, make blocking calls, so that the exported methods can observe deadlines. Data
// that was written before Close is sent.
type streamConn struct {
	port   *base
	remote gossipAddr
	send   func(*wire.Bytes) error
	recv   func() (*wire.Bytes, error)

	in     chan []byte // filled by read; unbuffered, so that a slow reader slows down the peer
	out    chan []byte // emptied by write; unbuffered, so that all accepted data is sent
	turn   chan []byte // capacity 1: the unread rest of a piece; one Read at a time takes it
	closed chan struct{}
	over   chan struct{} // closed when the peer sends no further data
	dead   chan struct{} // closed when no data can be written any more

	readBy, writeBy deadline

	once    sync.Once
	mu      sync.Mutex // guards both errors
	readErr error
	sendErr error
}

func newStreamConn(p *base, remote string, send func(*wire.Bytes) error, recv func() (*wire.Bytes, error)) *streamConn {
	c := &streamConn{
		port: p, remote: gossipAddr(remote), send: send, recv: recv,
		in: make(chan []byte), out: make(chan []byte), turn: make(chan []byte, 1),
		closed: make(chan struct{}), over: make(chan struct{}), dead: make(chan struct{}),
	}
	c.turn <- nil
	return c
}

// read passes incoming pieces to Read. After Close it discards pieces, so that the peer can finish.
func (c *streamConn) read() {
	defer close(c.over)
	for {
		m, err := c.recv()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				err = fmt.Errorf("transport: gossip stream with %s: %w: %w", c.remote, io.ErrUnexpectedEOF, err)
			}
			c.mu.Lock()
			c.readErr = err
			c.mu.Unlock()
			return
		}
		if len(m.Data) == 0 {
			continue
		}
		select {
		case c.in <- m.Data:
		case <-c.closed:
		case <-c.port.ctx.Done():
		}
	}
}

func (c *streamConn) write(stream context.Context) {
	for {
		select {
		case b := <-c.out:
			if err := c.send(&wire.Bytes{Data: b}); err != nil {
				c.fail(err)
				return
			}
		case <-c.closed:
			return
		case <-stream.Done():
			c.fail(stream.Err())
			return
		}
	}
}

func (c *streamConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sendErr == nil {
		c.sendErr = fmt.Errorf("transport: gossip stream with %s is broken: %w", c.remote, err)
		close(c.dead)
	}
}

func (c *streamConn) errors() (read, send error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.readErr, c.sendErr
}

func (c *streamConn) Read(b []byte) (int, error) {
	if isClosed(c.closed) {
		return 0, net.ErrClosed
	}
	passed := c.readBy.passed()
	if isClosed(passed) {
		return 0, os.ErrDeadlineExceeded
	}
	var rest []byte
	select {
	case rest = <-c.turn:
	case <-passed:
		return 0, os.ErrDeadlineExceeded
	case <-c.closed:
		return 0, net.ErrClosed
	}
	n := 0
	defer func() { c.turn <- rest[n:] }()
	if len(b) == 0 {
		return 0, nil
	}
	if len(rest) == 0 {
		var err error
		if rest, err = c.next(passed); err != nil {
			return 0, err
		}
	}
	n = copy(b, rest)
	return n, nil
}

func (c *streamConn) next(passed <-chan struct{}) ([]byte, error) {
	select {
	case piece := <-c.in:
		return piece, nil
	case <-c.over:
		err, _ := c.errors()
		return nil, err
	case <-passed:
		return nil, os.ErrDeadlineExceeded
	case <-c.closed:
		return nil, net.ErrClosed
	}
}

// Write implements net.Conn. A nil error means only that the data was accepted for sending.
func (c *streamConn) Write(b []byte) (int, error) {
	passed := c.writeBy.passed()
	written := 0
	for written < len(b) {
		if isClosed(c.closed) {
			return written, net.ErrClosed
		}
		if isClosed(passed) {
			return written, os.ErrDeadlineExceeded
		}
		n := min(len(b)-written, pieceBytes)
		select {
		case c.out <- append([]byte(nil), b[written:written+n]...):
			written += n
		case <-c.dead:
			_, err := c.errors()
			return written, err
		case <-passed:
			return written, os.ErrDeadlineExceeded
		case <-c.closed:
			return written, net.ErrClosed
		}
	}
	return written, nil
}

// Close implements net.Conn. Written data is sent, and unread data is discarded.
func (c *streamConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.readBy.set(time.Time{})
		c.writeBy.set(time.Time{})
	})
	return nil
}

func (c *streamConn) LocalAddr() net.Addr { return c.port.config.Listener.Addr() }

// RemoteAddr implements net.Conn. It returns the address that the peer claims.
func (c *streamConn) RemoteAddr() net.Addr { return c.remote }

func (c *streamConn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

func (c *streamConn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

func (c *streamConn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}

type gossipAddr string

func (gossipAddr) Network() string  { return "tcp" }
func (a gossipAddr) String() string { return string(a) }
