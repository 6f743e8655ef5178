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

// linger limits the time for sending queued data when this side ends a link.
const linger = time.Second

type state uint8

const (
	dialing state = iota
	up
	ended // such a link is only in table.dying
)

// link is a connection to one instance, over one stream. A new link to an instance begins only
// after the Down of the previous link, so that no data is lost without a Down.
type link struct {
	port     *base
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
		frame, ended, dropped := l.queue.next()
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

// deliver checks a frame and passes it to the handler. A refusal ends the link.
func (l *link) deliver(f *received) *wire.Refusal {
	p := l.port
	if f.refusal != nil {
		l.recordError(refused(l.peer.Addr, f.refusal))
		return nil // the peer ends the stream after a refusal
	}
	if l.mute.Load() {
		return nil
	}
	if f.standing != nil {
		if r := l.learn(f.standing); r != nil {
			return r
		}
	}
	messages := f.raft
	if f.malformed {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "a raft message that cannot be decoded"}
	}
	self := p.self.Load()
	if self.Instance() != l.self {
		return nil
	}
	words := len(f.words[0])+len(f.words[1])+len(f.words[2]) > 0
	if self.Group == 0 || self.Group != l.peer.Group {
		if !words && len(messages) == 0 && !f.retired {
			return nil
		}
		p.counts.framesForeign.Add(1)
		text := fmt.Sprintf("this node is in group %x, the peer in %x", self.Group, l.peer.Group)
		if self.Group == 0 || l.peer.Group == 0 { // one side has just started, or will restart in place
			p.config.Logger.Debug("transport: dropped a frame that came before both sides had a group",
				"addr", l.peer.Addr, "instance", l.instance, "why", text)
		} else {
			p.notices.warn("transport: dropped a frame from another group", "addr", l.peer.Addr, "instance", l.instance,
				"why", text)
		}
		if words {
			return &wire.Refusal{Reason: wire.Refusal_GROUP, Text: text}
		}
		return nil
	}
	out := Frame{Renewals: f.words[0], Commands: f.words[1], Replies: f.words[2], Retired: f.retired}
	out.Raft = p.ours(self, l.peer, messages)
	if !l.peer.serves() {
		out.Raft, out.Replies, out.Retired = nil, nil, false
	}
	if !out.empty() {
		p.config.Handler.Frame(l.peer, out)
	}
	return nil
}

func (l *link) learn(s *wire.Standing) *wire.Refusal {
	if len(s.Addr) > maxAddr {
		return &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "an address that is too long"}
	}
	l.peer.Group, l.peer.Raft, l.peer.Addr = s.Group, s.Raft, s.Addr
	l.peer.confine()
	return nil
}
