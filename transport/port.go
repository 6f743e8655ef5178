package transport

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/mortise-lock/mortise/internal/nodeid"
	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// linger limits the time for sending queued data when this side ends a link.
const linger = time.Second

// Port handles all network traffic of one node. It is safe for concurrent use.
type Port struct {
	config   Config
	listener *listener
	server   *grpc.Server
	gossip   *Gossip
	notices  *notices
	counts   counters

	self    atomic.Pointer[Self]
	boot    [bootBytes]byte // random bytes of this process, to detect a copied directory
	closing chan struct{}   // closed when Close begins
	ctx     context.Context // ends when Close closes all connections
	cancel  context.CancelFunc
	tasks   sync.WaitGroup // all goroutines except those of gRPC
	closed  chan struct{}  // closed when Close has finished

	holds holdings
	guard *guard
	dials *dials

	mu     sync.Mutex // guards all below; never held across a wait
	shut   bool
	number uint64 // number of the last hello that this node sent for a link
	links  map[nodeid.ID]*link
	dying  map[nodeid.ID]*link // for each instance, the last ended link whose Down has not returned
	shared map[string]*shared  // connections for questions and gossip, by address
	// ends with this incarnation, as do the connections that this incarnation dialed for calls
	life    context.Context
	endLife context.CancelFunc
}

// New opens a port, which accepts connections when New returns. The error lists all mistakes in c.
func New(c Config) (*Port, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	p := &Port{
		config:   c,
		listener: newListener(&c),
		notices:  newNotices(c.Logger),
		closing:  make(chan struct{}),
		closed:   make(chan struct{}),
		links:    map[nodeid.ID]*link{},
		dying:    map[nodeid.ID]*link{},
		shared:   map[string]*shared{},
	}
	p.holds.init(&c)
	p.guard = newGuard(p)
	p.listener.guard = p.guard
	p.listener.failing.tell, p.listener.failing.unable = p.notices, c.Unable
	p.listener.failing.address = c.Listener.Addr().String()
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.life, p.endLife = context.WithCancel(p.ctx)
	c.Random(p.boot[:])
	self := c.Self
	p.self.Store(&self)
	p.dials = newDials(c.Random, func() bool { return p.self.Load().Group == 0 })
	p.gossip = newGossip(p)
	if c.TLS != nil {
		p.tasks.Go(p.guard.run)
	}
	p.server = grpc.NewServer(p.serverOptions()...)
	wire.RegisterPeerServer(p.server, &service{port: p})
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
