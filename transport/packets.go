package transport

import (
	"context"
	"time"

	"google.golang.org/grpc"

	wire "github.com/mortise-lock/mortise/transport/wire/mortise/transport/v1"
)

// packeter is the outbox of one address. Its goroutine lives while packets flow.
type packeter struct {
	wake  chan struct{} // one slot
	queue [][]byte      // guarded by Gossip.mu, as is the rest
	bytes int
}

// enqueue reports whether there was room.
func (g *Gossip) enqueue(addr string, b []byte) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.packeters[addr]
	if s == nil {
		s = &packeter{wake: make(chan struct{}, 1)}
		g.port.mu.Lock()
		if g.port.shut {
			g.port.mu.Unlock()
			return false
		}
		g.port.tasks.Add(1)
		g.port.mu.Unlock()
		g.packeters[addr] = s
		go func() {
			defer g.port.tasks.Done()
			g.run(s, addr)
		}()
	}
	if len(s.queue) >= packetsQueued || s.bytes+len(b) > frameBytes {
		return false
	}
	s.queue = append(s.queue, b)
	s.bytes += len(b)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// collect takes all that waits. With leave it ends the outbox if nothing does.
func (g *Gossip) collect(s *packeter, addr string, leave bool) (packets [][]byte, left bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	packets, s.queue, s.bytes = s.queue, nil, 0
	if leave && len(packets) == 0 {
		delete(g.packeters, addr)
		return nil, true
	}
	return packets, false
}

// run is the goroutine of an outbox.
func (g *Gossip) run(s *packeter, addr string) {
	var open *flow
	defer func() { open.end() }()
	timer := time.NewTimer(packetIdle)
	defer timer.Stop()
	for leave := false; ; {
		packets, left := g.collect(s, addr, leave)
		if left {
			return
		}
		timer.Reset(packetIdle)
		if len(packets) > 0 {
			var err error
			if open, err = g.send(open, addr, packets); err != nil {
				g.port.counts.packetsDropped.Add(uint64(len(packets)))
				open.end()
				open = nil
				timer.Reset(packetPause)
				select {
				case <-timer.C:
				case <-g.port.closing:
				}
				late, _ := g.collect(s, addr, false) // gossip that waited is no news any more
				g.port.counts.packetsDropped.Add(uint64(len(late)))
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

// flow is an open stream of packets to an address.
type flow struct {
	port   *Port
	shared *shared
	stream grpc.ClientStreamingClient[wire.Parcel, wire.Ack]
	cancel context.CancelFunc
}

// send sends packets on f, or on a new stream if f is nil or over, in as many messages as they
// need.
func (g *Gossip) send(f *flow, addr string, packets [][]byte) (_ *flow, err error) {
	for len(packets) > 0 {
		n, size := 0, 0
		for n < len(packets) && (n == 0 || size+len(packets[n]) <= pieceBytes) {
			size += len(packets[n])
			n++
		}
		if f, err = g.post(f, addr, packets[:n]); err != nil {
			return f, err
		}
		packets = packets[n:]
	}
	return f, nil
}

// post sends packets in one message.
func (g *Gossip) post(f *flow, addr string, packets [][]byte) (*flow, error) {
	if f != nil && f.shared.self == g.port.self.Load() {
		if f.stream.Send(&wire.Parcel{Packets: packets}) == nil {
			return f, nil
		}
		if err := f.verdict(); err != nil {
			return f, err
		}
	}
	f.end() // the peer went and may be back, or what we say of ourselves has changed
	f, err := g.open(addr)
	if err != nil {
		return nil, err
	}
	if f.stream.Send(&wire.Parcel{Packets: packets}) != nil {
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

// verdict says why a stream that ended was refused; nil: it merely ended.
func (f *flow) verdict() error {
	ack := &wire.Ack{}
	if err := f.stream.RecvMsg(ack); err != nil || ack.Refusal == nil {
		return nil
	}
	err := refused(f.shared.addr, ack.Refusal)
	f.port.notices.warn("transport: gossip is refused", "addr", f.shared.addr, "why", err)
	return err
}

// end gives the stream and its connection back. A nil flow has none.
func (f *flow) end() {
	if f != nil && f.cancel != nil {
		f.cancel()
		f.cancel = nil
		f.port.release(f.shared)
	}
}
