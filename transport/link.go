package transport

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

type state uint8

const (
	dialing state = iota
	up
	ended // such a link is only in the table Port.dying
)

// link is a connection to one instance, over one stream. A new link to an instance begins only
// after the Down of the previous link, so that no data is lost without a Down.
type link struct {
	port     *Port
	instance nodeid.ID // the peer
	self     nodeid.ID // this node's incarnation
	queue    *queue
	before   <-chan struct{} // the channel done of the previous link; nil means no previous link
	settled  chan struct{}   // closed when state is no longer dialing
	done     chan struct{}   // closed after Down has returned
	mute     atomic.Bool     // incoming frames are dropped
	idle     atomic.Bool     // the sender must send kindKeepalive

	peer Identity // the receiver goroutine owns it once the link is up

	// Guarded by port.mu:
	state   state
	dialed  string // empty if the peer dialed
	greeted bool   // this node's hello is sent
	abandon func() // cancels this node's dial
	number  uint64 // number in the peer's hello on the stream
	boot    [bootBytes]byte
	met     Identity // identity in the peer's hello
	stream  *stream
	born    time.Time
	reaper  *time.Timer // kills the stream if its end takes too long
	reason  error       // why the link ended
}

// rise marks l as up, with the stream s. The caller holds port.mu.
func (l *link) rise(who *introduction, s *stream) {
	l.state, l.peer, l.met, l.number, l.boot, l.stream, l.born = up, who.peer, who.peer, who.number, who.boot, s,
		time.Now()
	close(l.settled)
}

// transmit is the sender goroutine. It yields the processor before it empties the queue, so that
// other goroutines can add to the same frame.
func (l *link) transmit(s *stream) {
	for range l.queue.wake {
		runtime.Gosched()
		if l.say(s) {
			return
		}
	}
}

func (l *link) say(s *stream) (last bool) {
	for {
		frame, ended, dropped := l.queue.take()
		l.port.counts.raftDropped.Add(uint64(dropped))
		var err error
		switch {
		case ended:
			_ = s.mark(kindClose) // on an error, the peer has closed the stream
			return true
		case frame != nil:
			l.port.counts.framesSent.Add(1)
			err = s.send(frame)
		case l.idle.Swap(false):
			err = s.mark(kindKeepalive)
		default:
			return false
		}
		if err != nil { // the receiver gets an error as well, and reports the reason
			l.queue.drop()
			return true
		}
	}
}

// receive is the receiver goroutine. If a frame is refused, receive sends the reason, and drops
// further frames until the peer closes the stream, at most for the duration linger.
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
	l.recordError(err)
}

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

func (l *link) recordError(err error) {
	l.port.mu.Lock()
	defer l.port.mu.Unlock()
	if l.reason == nil {
		l.reason = err
	}
}
