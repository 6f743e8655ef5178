package memnet

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// queueBytes is how much one direction of a connection buffers before its writer blocks.
const queueBytes = 256 << 10

// conn is one end of a connection. It reads from in and writes to out. The out queue is the in
// queue of the other end.
type conn struct {
	net           *Network
	local, remote addr
	in, out       *queue
	once          sync.Once
}

func newPair(n *Network, a, b addr) (*conn, *conn) {
	toA, toB := newQueue(), newQueue()
	return &conn{net: n, local: a, remote: b, in: toA, out: toB}, &conn{net: n, local: b, remote: a, in: toB, out: toA}
}

func (c *conn) Read(b []byte) (int, error)  { return c.in.read(b) }
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b) }

// Close lets the other end read all written bytes and then EOF. After Close, writes of the other
// end fail.
func (c *conn) Close() error {
	c.once.Do(func() {
		c.out.finish(io.EOF)
		c.in.discard(net.ErrClosed, syscall.EPIPE)
		c.net.forget(c)
	})
	return nil
}

// reset ends both directions immediately and discards the bytes in flight.
func (c *conn) reset() {
	c.out.discard(syscall.ECONNRESET, syscall.ECONNRESET)
	c.in.discard(syscall.ECONNRESET, syscall.ECONNRESET)
	c.net.forget(c)
}

func (c *conn) LocalAddr() net.Addr  { return c.local }
func (c *conn) RemoteAddr() net.Addr { return c.remote }

func (c *conn) SetDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

func (c *conn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

// queue is one direction of a connection. Every change closes the channel `changed` and stores a
// new one. This wakes all readers and writers.
type queue struct {
	mu      sync.Mutex // guards all below; never held across a wait
	changed chan struct{}
	buf     []byte
	latency time.Duration
	lost    func() time.Duration // nil means that nothing is lost
	flying  []flight             // the last bytes of buf, still in flight; the oldest first
	stalled bool                 // the direction is cut, so reads block
	// discarded means that both sides have ended, whatever is cut
	discarded bool
	readErr   error // the error of reads when buf is empty
	writeErr  error // the error of all writes
	readBy    time.Time
	writeBy   time.Time
}

type flight struct {
	bytes int
	at    time.Time // time of their arrival
}

func newQueue() *queue { return &queue{changed: make(chan struct{})} }

// change runs f under the lock and wakes all readers and writers.
func (q *queue) change(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	f()
	q.wake()
}

func (q *queue) wake() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// setStalled has no effect on a discarded queue, whose reads return. A cut finds the connections
// first and stalls them afterwards, so one of them can be closed in between.
func (q *queue) setStalled(stalled bool) { q.change(func() { q.stalled = stalled && !q.discarded }) }

func (q *queue) setLatency(d time.Duration) { q.change(func() { q.latency = d }) }

// arrived returns the number of bytes that can be read, and the time when the next bytes in flight
// arrive. The time is zero if no bytes are in flight.
func (q *queue) arrived() (n int, next time.Time) {
	n = len(q.buf)
	for len(q.flying) > 0 && expired(q.flying[0].at) {
		q.flying = q.flying[1:]
	}
	for _, f := range q.flying {
		n -= f.bytes
	}
	if len(q.flying) > 0 {
		next = q.flying[0].at
	}
	return n, next
}

// arrival returns the time when bytes that are written now arrive. They never arrive before bytes
// that were written earlier.
func (q *queue) arrival() time.Time {
	at := time.Now().Add(q.latency)
	if q.lost != nil {
		at = at.Add(q.lost())
	}
	if last := len(q.flying) - 1; last >= 0 && at.Before(q.flying[last].at) {
		return q.flying[last].at
	}
	return at
}

func (q *queue) setDeadline(field *time.Time, t time.Time) { q.change(func() { *field = t }) }

// finish closes the queue for the writer. The reader gets the buffered bytes, and then err.
func (q *queue) finish(err error) {
	q.change(func() {
		if q.readErr == nil {
			q.readErr = err
		}
		if q.writeErr == nil {
			q.writeErr = net.ErrClosed
		}
	})
}

// discard ends both sides immediately.
func (q *queue) discard(readErr, writeErr error) {
	q.change(func() {
		q.buf, q.flying, q.stalled, q.discarded, q.readErr = nil, nil, false, true, readErr
		if q.writeErr == nil {
			q.writeErr = writeErr
		}
	})
}

func (q *queue) read(b []byte) (int, error) {
	for {
		q.mu.Lock()
		if expired(q.readBy) {
			q.mu.Unlock()
			return 0, os.ErrDeadlineExceeded
		}
		by := q.readBy
		if !q.stalled {
			ready, next := q.arrived()
			if !next.IsZero() && (by.IsZero() || next.Before(by)) {
				by = next
			}
			if ready > 0 {
				n := copy(b, q.buf[:ready])
				q.buf = q.buf[n:]
				q.wake()
				q.mu.Unlock()
				return n, nil
			}
			if q.readErr != nil && len(q.buf) == 0 {
				err := q.readErr
				q.mu.Unlock()
				return 0, err
			}
		}
		changed := q.changed
		q.mu.Unlock()
		wait(changed, by)
	}
}

func (q *queue) write(b []byte) (int, error) {
	written := 0
	for {
		q.mu.Lock()
		if q.writeErr != nil {
			err := q.writeErr
			q.mu.Unlock()
			return written, err
		}
		if expired(q.writeBy) {
			q.mu.Unlock()
			return written, os.ErrDeadlineExceeded
		}
		if room := queueBytes - len(q.buf); room > 0 {
			n := min(room, len(b)-written)
			q.buf = append(q.buf, b[written:written+n]...)
			if q.latency > 0 {
				q.flying = append(q.flying, flight{n, q.arrival()})
			}
			written += n
			q.wake()
		}
		changed, by := q.changed, q.writeBy
		q.mu.Unlock()
		if written == len(b) {
			return written, nil
		}
		wait(changed, by)
	}
}

func expired(by time.Time) bool { return !by.IsZero() && !time.Now().Before(by) }

func wait(changed <-chan struct{}, by time.Time) {
	if by.IsZero() {
		<-changed
		return
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	}
}
