package transport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// Port handles all network traffic of one node. It is safe for concurrent use.
type Port struct {
	base
	table // the links
	pool  // the connections for questions and gossip

	server *grpc.Server
	gossip *Gossip
	closed chan struct{} // closed when Close has finished
}

// New opens a port, which accepts connections when New returns. The error lists all mistakes in c.
func New(c Config) (*Port, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	p := &Port{
		base: base{
			config:   c,
			listener: newListener(&c),
			notices:  newNotices(c.Logger),
			closing:  make(chan struct{}),
		},
		closed: make(chan struct{}),
	}
	p.table = table{base: &p.base, links: map[nodeid.ID]*link{}, dying: map[nodeid.ID]*link{}}
	p.pool = pool{base: &p.base, shared: map[string]*shared{}}
	p.holds.init(&c)
	p.guard = newGuard(&p.config, p.notices)
	p.listener.guard = p.guard
	p.listener.failing.tell, p.listener.failing.unable = p.notices, c.Unable
	p.listener.failing.address = c.Listener.Addr().String()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.life, p.endLife = context.WithCancel(p.ctx)
	c.Random(p.boot[:])
	self := c.Self
	p.self.Store(&self)
	p.dials = newDials(c.Random, func() bool { return p.self.Load().Group == 0 })
	p.gossip = newGossip(&p.pool)
	if c.TLS != nil {
		p.tasks.Go(func() { p.guard.run(p.ctx) })
	}
	p.server = grpc.NewServer(append(p.serverOptions(), grpc.Creds(newHandshaker(&p.table)))...)
	wire.RegisterPeerServer(p.server, &service{port: &p.table, gossip: p.gossip})
	p.register(&c.Services)
	p.tasks.Go(func() {
		if err := p.server.Serve(p.listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			c.Logger.Error("transport: the listener failed; no process can reach this node until it is restarted", "addr",
				c.Listener.Addr().String(), "error", err)
		}
	})
	return p, nil
}

// Close ends all connections and goroutines. Queued data is sent if the peers read it within a
// second. Close returns after all goroutines have ended and all calls of the Handler have returned,
// including a Down for each link. Close may be called repeatedly and concurrently, but not from a
// method of the Handler. It always returns nil.
func (p *Port) Close() error {
	p.mu.Lock()
	if p.shut {
		p.mu.Unlock()
		<-p.closed
		return nil
	}
	p.shut = true
	close(p.closing)
	var waits []<-chan struct{}
	for _, l := range p.links {
		p.cutOff(l, ErrClosed)
	}
	for _, l := range p.dying {
		waits = append(waits, l.done)
	}
	p.dials.forget(true)
	p.mu.Unlock()

	patience := time.NewTimer(linger)
	defer patience.Stop()
	for _, wait := range waits {
		select {
		case <-wait:
		case <-patience.C:
			patience.Reset(0)
		}
	}
	p.cancel()
	p.listener.closeAll()
	p.server.Stop()
	p.listener.closeAll()
	p.tasks.Wait()
	close(p.closed)
	return nil
}

// Gossip returns the gossip traffic of the port.
func (p *Port) Gossip() *Gossip { return p.gossip }

// Addr returns the address at which the port listens.
func (p *Port) Addr() net.Addr { return p.config.Listener.Addr() }

// Send queues f for a peer, without blocking. If there is no link and an address is given, Send
// starts a dial, and f waits for the dial. After a nil error, either f arrives in order, or the
// handler's Down is called. Raft messages may be dropped if too many are queued, because raft
// repeats them. The bytes are copied, but raft messages must not be changed afterwards. Send fails
// with ErrNoLink, ErrFull, ErrTooLarge or ErrClosed. While this node has no group, Send fails with
// ErrGroup. After an error, nothing of f is queued.
func (p *Port) Send(to nodeid.Endpoint, f Frame) error {
	if f.empty() {
		return nil
	}
	self := p.self.Load()
	if self.Group == 0 {
		return fmt.Errorf("%w: this node belongs to no group yet", ErrGroup)
	}
	l, err := p.linkFor(to)
	if err != nil {
		return err
	}
	dropped, err := l.queue.push(&f)
	p.counts.raftDropped.Add(uint64(dropped))
	return err
}

// Prefer sets the addresses of the group's voters, at most 16, which are dialed and accepted first.
// Each call replaces the previous addresses. A failed dial to one of them is repeated within half a
// second.
func (p *Port) Prefer(addrs []string) {
	addrs = addrs[:min(len(addrs), maxPreferred)]
	p.dials.prefer(addrs)
	p.listener.turns.prefer(addrs)
}
