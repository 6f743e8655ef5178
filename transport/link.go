package transport

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type state uint8

const (
	dialing state = iota // what is sent waits
	up
	ended // in no table but dying
)

// link is one continuous conversation with one instance, over one stream. A link never changes its stream, and a new one begins only
// after the Down of the one before: so nothing is reordered and nothing lost without a Down.
type link struct {
	port     *Port
	instance Instance // of the peer
	self     Instance // the life of ours that it belongs to
	queue    *queue
	before   <-chan struct{} // done of the link before; nil: none
	settled  chan struct{}   // closed when the state is no longer dialing
	done     chan struct{}   // closed after Down has returned
	mute     atomic.Bool     // what comes is dropped

	peer Identity // of the receiver goroutine once up

	// Guarded by port.mu:
	state   state
	dialed  string // the address that was dialed; empty: the peer dialed us
	greeted bool   // our dial has sent its hello: the peer may have accepted
	abandon func() // ends our dial
	number  uint64 // of the peer's hello that made the stream
	carrier *carrier
	born    time.Time
	reaper  *time.Timer // kills the carrier if the end on our side takes too long
	reason  error       // why it ended; the first that is known
}

// carrier is a stream, of either side of gRPC.
type carrier struct {
	send  func(*wire.Frame) error
	recv  func() (*received, error) // what it returns is valid until the next
	close func()                    // says that we send no more; on the accepting side the return of the call does
	kill  func()                    // ends the stream at once; safe for concurrent use
	gone  <-chan struct{}           // accepting side: closed when the connection is; else nil
}

// rise makes l a link over c. The caller holds port.mu.
func (l *link) rise(peer Identity, number uint64, c *carrier) {
	l.state, l.peer, l.number, l.carrier, l.born = up, peer, number, c, time.Now()
	close(l.settled)
}

// transmit is the sender goroutine: it owns the sending side of the stream. It is woken by the queue and stops when the queue has
// ended and is empty, or the stream is broken. Yielding before it drains lets everybody who can run put his part into the same frame.
func (l *link) transmit(c *carrier) {
	for range l.queue.wake {
		runtime.Gosched()
		for {
			frame, ended, dropped := l.queue.take()
			l.port.counts.raftDropped.Add(uint64(dropped))
			if ended {
				c.close()
				return
			}
			if frame == nil {
				break
			}
			if err := c.send(frame); err != nil {
				// The receiver sees the break too, and knows why. Killing would lose what has arrived.
				l.queue.drop()
				return
			}
			l.port.counts.framesSent.Add(1)
		}
	}
}

// receive is the receiver goroutine: it hands frames to the handler until the stream ends. first is a frame that was read already. A
// peer that sends what we refuse is told why, and read without listening until it has hung up or linger is over.
func (l *link) receive(c *carrier, first *received) {
	f, err := first, error(nil)
	for err == nil {
		if refusal := l.deliver(f); refusal != nil {
			l.hangUp(c, refusal)
		}
		f, err = c.recv()
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the peer closed the stream", ErrNoLink)
	}
	l.blame(err)
}

// hangUp ends the link because of what the peer sent.
func (l *link) hangUp(c *carrier, r *wire.Refusal) {
	l.mute.Store(true)
	err := fmt.Errorf("%w: %s", kindOf(r.Reason), r.Text)
	l.port.mu.Lock()
	defer l.port.mu.Unlock()
	if l.reason == nil {
		l.reason = err
	}
	l.queue.end(r)
	if l.reaper == nil {
		l.reaper = time.AfterFunc(linger, c.kill)
	}
}

// blame notes why l ended, unless a reason is known.
func (l *link) blame(err error) {
	l.port.mu.Lock()
	defer l.port.mu.Unlock()
	if l.reason == nil {
		l.reason = err
	}
}
