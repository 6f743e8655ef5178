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

// link is one continuous conversation with one instance, over one stream. A link never changes its
// stream, and a new one begins only after the Down of the one before: so nothing is reordered and
// nothing lost without a Down.
type link struct {
	port     *Port
	instance Instance // of the peer
	self     Instance // the life of ours that it belongs to
	queue    *queue
	before   <-chan struct{} // done of the link before; nil: none
	settled  chan struct{}   // closed when the state is no longer dialing
	done     chan struct{}   // closed after Down has returned
	mute     atomic.Bool     // what comes is dropped
	idle     atomic.Bool     // the sender is to say that we are still there

	peer Identity // of the receiver goroutine once up

	// Guarded by port.mu:
	state   state
	dialed  string          // the address that was dialed; empty: the peer dialed us
	greeted bool            // our dial has sent its hello: the peer may have accepted
	abandon func()          // ends our dial
	number  uint64          // of the peer's hello that made the stream
	boot    [bootBytes]byte // likewise
	met     Identity        // likewise
	stream  *stream
	born    time.Time
	reaper  *time.Timer // kills the stream if the end on our side takes too long
	reason  error       // why it ended; the first that is known
}

// rise makes l a link over s. The caller holds port.mu.
func (l *link) rise(who *introduction, s *stream) {
	l.state, l.peer, l.met, l.number, l.boot, l.stream, l.born = up, who.peer, who.peer, who.number, who.boot, s,
		time.Now()
	close(l.settled)
}

// transmit is the sender goroutine: it owns the sending side of the stream. It is woken by the
// queue and stops when the queue has ended and is empty, or the stream is broken. Yielding before
// it drains lets everybody who can run put his part into the same frame.
func (l *link) transmit(s *stream) {
	for range l.queue.wake {
		runtime.Gosched()
		if l.say(s) {
			return
		}
	}
}

// say sends all that waits, and reports whether it was the last.
func (l *link) say(s *stream) (last bool) {
	for {
		frame, ended, dropped := l.queue.take()
		l.port.counts.raftDropped.Add(uint64(dropped))
		var err error
		switch {
		case ended:
			_ = s.mark(goodbye) // the peer reads it or has hung up
			return true
		case frame != nil:
			l.port.counts.framesSent.Add(1)
			err = s.send(frame)
		case l.idle.Swap(false):
			err = s.mark(stillHere)
		default:
			return false
		}
		if err != nil { // the receiver sees the break too, and knows why
			l.queue.drop()
			return true
		}
	}
}

// receive is the receiver goroutine: it hands frames to the handler until the stream ends. A peer
// that sends what we refuse is told why, and read without listening until it has hung up or linger
// is over.
func (l *link) receive(s *stream) {
	f, err := s.recv()
	for ; err == nil; f, err = s.recv() {
		if refusal := l.deliver(f); refusal != nil {
			l.hangUp(s, refusal)
		}
	}
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: the peer closed the stream", ErrNoLink)
	}
	l.blame(err)
}

// hangUp ends the link because of what the peer sent.
func (l *link) hangUp(s *stream, r *wire.Refusal) {
	l.mute.Store(true)
	err := fmt.Errorf("%w: %s", kindOf(r.Reason), r.Text)
	l.port.mu.Lock()
	defer l.port.mu.Unlock()
	if l.reason == nil {
		l.reason = err
	}
	l.queue.end(r)
	if l.reaper == nil {
		l.reaper = time.AfterFunc(linger, s.kill)
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
