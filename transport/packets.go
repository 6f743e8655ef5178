package transport

import (
	"context"
	"time"

	"google.golang.org/grpc"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

const (
	packetsQueued = 128             // packets queued for one address, and for the reader of Packets
	packetIdle    = 5 * time.Second // time after which an unused stream of packets ends
	packetPause   = time.Second / 2 // time for which packets are dropped after a failure
)

// packeter is the outbox for one address. Its goroutine ends if it gets no packets for packetIdle.
// Gossip.mu guards the fields.
type packeter struct {
	wake  chan struct{} // capacity 1
	queue [][]byte
	bytes int

	raft      [][]byte // encoded, from SendDuplicates
	raftBytes int
}

func (s *packeter) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// outbox returns the outbox for an address, or nil if the port is closed. The caller holds mu.
func (g *Gossip) outbox(addr string) *packeter {
	s := g.packeters[addr]
	if s != nil {
		return s
	}
	s = &packeter{wake: make(chan struct{}, 1)}
	g.port.mu.Lock()
	defer g.port.mu.Unlock()
	if g.port.shut {
		return nil
	}
	g.port.tasks.Go(func() { g.run(s, addr) })
	g.packeters[addr] = s
	return s
}

func (g *Gossip) enqueue(addr string, b []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.outbox(addr)
	if s == nil || len(s.queue) >= packetsQueued || s.bytes+len(b) > frameBytes {
		return false
	}
	s.queue = append(s.queue, b)
	s.bytes += len(b)
	s.notify()
	return true
}

type waiting struct{ packets, raft [][]byte }

func (w waiting) count() int { return len(w.packets) + len(w.raft) }

// collect empties the outbox and returns its content. If leave is true, it removes an empty outbox
// and returns left = true.
func (g *Gossip) collect(s *packeter, addr string, leave bool) (all waiting, left bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all = waiting{s.queue, s.raft}
	s.queue, s.bytes, s.raft, s.raftBytes = nil, 0, nil, 0
	if leave && all.count() == 0 {
		delete(g.packeters, addr)
		return all, true
	}
	return all, false
}

func (g *Gossip) run(s *packeter, addr string) {
	var open *flow
	defer func() { open.end() }()
	timer := time.NewTimer(packetIdle)
	defer timer.Stop()
	for leave := false; ; {
		all, left := g.collect(s, addr, leave)
		if left {
			return
		}
		timer.Reset(packetIdle)
		if all.count() > 0 {
			var err error
			if open, err = g.send(open, addr, all); err != nil {
				g.port.counts.packetsDropped.Add(uint64(all.count()))
				open.end()
				open = nil
				timer.Reset(packetPause)
				select {
				case <-timer.C:
				case <-g.port.closing:
				}
				late, _ := g.collect(s, addr, false) // drops gossip that has waited, because it is stale
				g.port.counts.packetsDropped.Add(uint64(late.count()))
				timer.Reset(packetIdle)
			}
		}
		leave = false
		select {
		case <-s.wake:
		case <-timer.C:
			leave = true
		case <-g.port.closing:
			g.mu.Lock()
			delete(g.packeters, addr)
			g.mu.Unlock()
			return
		}
	}
}

type flow struct {
	port   *pool
	shared *shared
	stream grpc.ClientStreamingClient[wire.Parcel, wire.Ack]
	cancel context.CancelFunc
}

func (g *Gossip) send(f *flow, addr string, all waiting) (_ *flow, err error) {
	if len(all.raft) > 0 {
		if f, err = g.post(f, addr, &wire.Parcel{Raft: all.raft}); err != nil {
			return f, err
		}
	}
	for packets := all.packets; len(packets) > 0; {
		n, size := 0, 0
		for n < len(packets) && (n == 0 || size+len(packets[n]) <= pieceBytes) {
			size += len(packets[n])
			n++
		}
		if f, err = g.post(f, addr, &wire.Parcel{Packets: packets[:n]}); err != nil {
			return f, err
		}
		packets = packets[n:]
	}
	return f, nil
}

func (g *Gossip) post(f *flow, addr string, parcel *wire.Parcel) (*flow, error) {
	if f != nil && f.shared.self == g.port.self.Load() {
		if f.stream.Send(parcel) == nil {
			return f, nil
		}
		if err := f.verdict(); err != nil {
			return f, err
		}
	}
	f.end() // the peer may have restarted, or this node's identity may have changed
	f, err := g.open(addr)
	if err != nil {
		return nil, err
	}
	if f.stream.Send(parcel) != nil {
		return f, f.verdict()
	}
	return f, nil
}

func (g *Gossip) open(addr string) (*flow, error) {
	ctx, cancel := context.WithCancel(g.port.ctx)
	stop := time.AfterFunc(2*g.port.config.DialTimeout, cancel)
	defer stop.Stop()
	s, err := g.port.borrow(ctx, addr)
	if err != nil {
		cancel()
		return nil, err
	}
	stream, err := s.d.Packets(ctx)
	if err != nil {
		err = s.d.explain(ctx, err)
		g.port.release(s)
		cancel()
		return nil, err
	}
	return &flow{port: g.port, shared: s, stream: stream, cancel: cancel}, nil
}

func (f *flow) verdict() error {
	ack := &wire.Ack{}
	if err := f.stream.RecvMsg(ack); err != nil || ack.Refusal == nil {
		return nil
	}
	err := refused(f.shared.addr, ack.Refusal)
	f.port.notices.warn("transport: a peer refuses gossip", "addr", f.shared.addr, "why", err)
	return err
}

func (f *flow) end() {
	if f != nil && f.cancel != nil {
		f.cancel()
		f.cancel = nil
		f.port.release(f.shared)
	}
}
