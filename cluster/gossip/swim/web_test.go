package swim

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/gossip"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

const label = "test"

func addrOf(i int) string { return fmt.Sprintf("10.0.0.%d:7947", i+1) }

// web is an in-memory network for synctest bubbles, with the instances on it. Packets arrive
// without delay, streams are pipes, and an address that is cut off is silent.
type web struct {
	t   *testing.T
	all []*instance

	mu    sync.Mutex // guards the fields below
	ports map[string]*port
	off   map[string]bool
}

type instance struct {
	*Gossip
	web   *web
	port  *port
	first gossip.Meta

	mu    sync.Mutex // guards peers, and orders the calls of Take
	peers map[string]gossip.Meta
}

type port struct {
	web     *web
	addr    string
	packets chan packet
	streams chan net.Conn
	late    chan net.Conn // if not nil, a dial succeeds only after its context has ended; each is sent here
}

type packet struct {
	data []byte
	from string
	at   time.Time
}

func newWeb(t *testing.T) *web { return &web{t: t, ports: map[string]*port{}, off: map[string]bool{}} }

func (w *web) listen(addr string) *port {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := &port{web: w, addr: addr, packets: make(chan packet, 256), streams: make(chan net.Conn, 64)}
	w.ports[addr] = p
	return p
}

func (w *web) start(i int, label string) *instance {
	w.t.Helper()
	n := &instance{web: w, port: w.listen(addrOf(i)), peers: map[string]gossip.Meta{}}
	n.first = gossip.Meta{Instance: nodeidtest.ID(uint64(i) + 1), Name: fmt.Sprint("n", i), Addr: addrOf(i)}
	n.mu.Lock()
	defer n.mu.Unlock()
	g, err := Start(gossip.Config{
		Net: n.port, Label: label, Advertise: addrOf(i), Random: func(b []byte) { _, _ = rand.Read(b) },
		Logger: slog.New(slog.DiscardHandler),
		News:   func() { time.AfterFunc(0, n.hear) },
	}, n.first)
	if err != nil {
		w.t.Fatal(err)
	}
	n.Gossip = g.(*Gossip)
	w.all = append(w.all, n)
	return n
}

func (w *web) crowd(n int) {
	w.t.Helper()
	for i := range n {
		if err := w.start(i, label).Join(addrOf(0)); err != nil {
			w.t.Fatal(err)
		}
	}
	time.Sleep(2 * time.Second)
	if !w.allSeeAll() {
		w.t.Fatal("not all see all")
	}
}

func (n *instance) hear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, news := range n.Take() {
		if n.peers[news.Name] = news.Meta; !news.Here {
			delete(n.peers, news.Name)
		}
	}
}

// sees returns the Meta of the instances that n sees, including itself, by name.
func (n *instance) sees() map[string]gossip.Meta {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]gossip.Meta{}
	for _, m := range n.peers {
		all[m.Name] = m
	}
	return all
}

func (w *web) allSeeAll() bool {
	return !slices.ContainsFunc(w.all, func(n *instance) bool { return len(n.sees()) != len(w.all) })
}

func (n *instance) stop() {
	n.Close()
	n.web.all = slices.DeleteFunc(n.web.all, func(o *instance) bool { return o == n })
	n.web.mu.Lock()
	defer n.web.mu.Unlock()
	delete(n.web.ports, n.port.addr)
}

func (w *web) stop() {
	for len(w.all) > 0 {
		w.all[0].stop()
	}
}

func (w *web) cut(addr string, off bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off[addr] = off
}

// reach returns the port at the destination address, or nil if there is no port or one of the two
// addresses is cut off.
func (w *web) reach(from, to string) *port {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.off[from] || w.off[to] {
		return nil
	}
	return w.ports[to]
}

func (p *port) WriteTo(b []byte, addr string) error {
	if to := p.web.reach(p.addr, addr); to != nil {
		select {
		case to.packets <- packet{slices.Clone(b), p.addr, time.Now()}:
		default:
		}
	}
	return nil
}

func (p *port) ReadPacket(ctx context.Context) ([]byte, string, time.Time, error) {
	select {
	case k := <-p.packets:
		return k.data, k.from, k.at, nil
	case <-ctx.Done():
		return nil, "", time.Time{}, ctx.Err()
	}
}

func (p *port) DialStream(ctx context.Context, addr string) (net.Conn, error) {
	to := p.web.reach(p.addr, addr)
	if to == nil {
		<-ctx.Done()
		return nil, errors.New("i/o timeout")
	}
	near, far := net.Pipe()
	if p.late != nil {
		<-ctx.Done()
		time.Sleep(time.Millisecond)
		p.late <- near
		return near, nil
	}
	select {
	case to.streams <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *port) AcceptStream(ctx context.Context) (net.Conn, error) {
	select {
	case c := <-p.streams:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
