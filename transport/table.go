package transport

import (
	"context"
	"fmt"
	"time"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	pauseFirst = 50 * time.Millisecond
	pauseMost  = time.Second
	pauseKept  = 10 * time.Second // how long a failure is remembered after its pause
	youngLink  = time.Second      // a link that ends sooner counts as a failed dial for the pause
)

// pause is the back-off after a failed dial.
type pause struct {
	addr  string
	delay time.Duration
	until time.Time
	timer *time.Timer // forgets it
}

// Send queues f for a peer and returns at once. Without a link, and with an address, one is dialed, and f waits for it. nil means that
// f goes out, in order, or that the handler's Down comes after it. Raft messages may be dropped instead if too many wait: raft repeats.
// The bytes are copied; raft messages must not be changed any more. Errors: ErrNoLink, ErrFull, ErrTooLarge, ErrGroup while we have no
// group, ErrClosed; nothing of f was queued then.
func (p *Port) Send(to Peer, f Frame) error {
	if f.empty() {
		return nil
	}
	self := p.self.Load()
	if self.Group == 0 {
		return fmt.Errorf("%w: this node belongs to none yet", ErrGroup)
	}
	l, err := p.linkFor(to)
	if err != nil {
		return err
	}
	dropped, err := l.queue.push(&f)
	p.counts.raftDropped.Add(uint64(dropped))
	return err
}

// linkFor finds or begins the link to a peer.
func (p *Port) linkFor(to Peer) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, ErrClosed
	}
	if l := p.links[to.Instance]; l != nil {
		return l, nil
	}
	switch {
	case to.Instance == 0 || to.Instance == p.self.Load().Instance:
		return nil, fmt.Errorf("%w: instance %x is no peer", ErrNoLink, uint64(to.Instance))
	case to.Addr == "":
		return nil, fmt.Errorf("%w: instance %x, and no address to dial", ErrNoLink, uint64(to.Instance))
	case len(p.links) >= p.config.Links:
		return nil, fmt.Errorf("%w: %d links are open", ErrFull, len(p.links))
	}
	if b := p.backoff[to.Instance]; b != nil && b.addr == to.Addr && time.Now().Before(b.until) {
		return nil, fmt.Errorf("%w: dialing %s failed a moment ago", ErrNoLink, to.Addr)
	}
	l := p.newLink(to.Instance, Identity{Instance: to.Instance, Addr: to.Addr})
	ctx, cancel := context.WithCancel(p.ctx)
	l.abandon = cancel
	p.tasks.Go(func() {
		defer cancel()
		p.dial(ctx, l, to.Addr)
	})
	return l, nil
}

// newLink enters a link in state dialing. The caller holds mu.
func (p *Port) newLink(instance Instance, peer Identity) *link {
	l := &link{
		port: p, instance: instance, self: p.self.Load().Instance, queue: newQueue(&p.config), peer: peer,
		settled: make(chan struct{}), done: make(chan struct{}), abandon: func() {},
	}
	if before := p.dying[instance]; before != nil {
		l.before = before.done
	}
	p.links[instance] = l
	return l
}

// detach takes a link out of the table: nobody can send on it any more. The caller holds mu and sees to it that bury is called.
func (p *Port) detach(l *link) {
	if l.state == dialing {
		close(l.settled)
	}
	l.state = ended
	if p.links[l.instance] == l {
		delete(p.links, l.instance)
		p.dying[l.instance] = l
	}
}

// expel ends a link on our side: what waits goes out within linger, what comes is not for us any more. The caller holds mu.
func (p *Port) expel(l *link, reason error) {
	l.mute.Store(true)
	if l.reason == nil {
		l.reason = reason
	}
	was := l.state
	p.detach(l)
	if was == dialing {
		l.abandon()
		p.tasks.Go(func() { p.bury(l) })
		return
	}
	l.queue.end(nil)
	if l.reaper == nil {
		l.reaper = time.AfterFunc(linger, l.carrier.kill)
	}
}

// bury is the last act of every link, done once, after its goroutines: Down, behind the last frame.
func (p *Port) bury(l *link) {
	if l.before != nil {
		<-l.before
	}
	p.mu.Lock()
	if p.links[l.instance] == l {
		p.detach(l)
		if time.Since(l.born) >= youngLink {
			p.forgive(l.instance)
		} else if l.dialed != "" {
			p.punish(l, l.dialed)
		}
	}
	if l.reaper != nil {
		l.reaper.Stop()
	}
	reason := l.reason
	p.mu.Unlock()
	l.queue.drop()
	p.config.Handler.Down(l.peer, reason)
	p.mu.Lock()
	if p.dying[l.instance] == l {
		delete(p.dying, l.instance)
	}
	p.mu.Unlock()
	close(l.done)
}

// punish begins or doubles the pause before the next dial. The caller holds mu.
func (p *Port) punish(l *link, addr string) {
	if p.shut {
		return
	}
	b := &pause{addr: addr, delay: pauseFirst}
	if old := p.backoff[l.instance]; old != nil {
		old.timer.Stop()
		b.delay = min(2*old.delay, pauseMost)
	}
	b.until = time.Now().Add(b.delay)
	b.timer = time.AfterFunc(b.delay+pauseKept, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.backoff[l.instance] == b {
			delete(p.backoff, l.instance)
		}
	})
	p.backoff[l.instance] = b
}

// forgive ends the back-off for one instance. The caller holds mu.
func (p *Port) forgive(instance Instance) {
	if b := p.backoff[instance]; b != nil {
		b.timer.Stop()
		delete(p.backoff, instance)
	}
}

// accept decides about a stream that a peer has opened with hello, and waits as long as that needs. It returns the link that the
// stream now is, or why not. See the package comment for the rule.
func (p *Port) accept(ctx context.Context, hello *wire.Hello, c *carrier) (*link, *wire.Refusal) {
	for {
		l, wait, refusal := p.tryAccept(hello, c)
		if l != nil || refusal != nil {
			return l, refusal
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, &wire.Refusal{Reason: wire.Refusal_CROSSED, Text: "the stream was given up by its dialer"}
		case <-p.closing:
			return nil, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "this node is closing"}
		}
	}
}

func (p *Port) tryAccept(hello *wire.Hello, c *carrier) (l *link, wait <-chan struct{}, refusal *wire.Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	self := p.self.Load()
	if r := self.refuse(hello); r != nil { // also after waiting: we may be another by now
		return nil, nil, r
	}
	from := Instance(hello.Instance)
	switch l = p.links[from]; {
	case p.shut:
		return nil, nil, &wire.Refusal{Reason: wire.Refusal_FAILED, Text: "this node is closing"}
	case from == self.Instance:
		return nil, nil, &wire.Refusal{Reason: wire.Refusal_MALFORMED, Text: "a node needs no stream to itself"}
	case l == nil:
		if d := p.dying[from]; d != nil {
			return nil, d.done, nil
		}
		if len(p.links) >= p.config.Links {
			return nil, nil, &wire.Refusal{Reason: wire.Refusal_FULL, Text: "this node has as many links as it may"}
		}
		l = p.newLink(from, identity(hello))
	case l.state == dialing && l.before != nil && !isClosed(l.before):
		return nil, l.before, nil
	case l.state == dialing && l.greeted && self.Instance < from:
		return nil, l.settled, nil // our own dial decides
	case l.state == dialing: // nothing of our dial has been heard there, or theirs counts more
		l.abandon()
	case hello.Number <= l.number:
		return nil, nil, &wire.Refusal{Reason: wire.Refusal_CROSSED, Text: "a newer stream between us exists"}
	default: // the peer has lost the stream that we still see
		l.carrier.kill()
		return nil, l.done, nil
	}
	p.number++
	l.rise(identity(hello), hello.Number, c)
	l.queue.say(self.greet(from, p.number))
	return l, nil, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
