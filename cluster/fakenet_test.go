package cluster

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// fakeNet is an in-memory network for synctest bubbles. Questions take a millisecond each way,
// gossip packets may be dropped, and streams are pipes. After a call of cut, nothing arrives
// between its two addresses.
type fakeNet struct {
	mu    sync.Mutex // guards the fields below
	ports map[string]*fakePort
	cuts  map[[2]string]bool
	mute  map[string]bool // addresses that receive and answer nothing
	alien map[string]bool // addresses where a foreign program listens
	conns map[net.Conn][2]string
	dials map[string]int // attempts to open a stream, by address
	heard []heard        // recorded questions
	taped bool

	fails func(what string) bool // reports whether a call fails; if it is nil, no call fails
}

func (n *fakeNet) failing(what string) error {
	if n.fails == nil || !n.fails(what) {
		return nil
	}
	return errCut
}

type heard struct {
	at       time.Time
	from, to string
	question []byte
}

func (n *fakeNet) tape() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taped, n.heard = true, nil
}

// played returns the recorded questions of a kind (the second byte) between two addresses. An empty
// address matches all addresses.
func (n *fakeNet) played(kind byte, from, to string) []heard {
	n.mu.Lock()
	defer n.mu.Unlock()
	var some []heard
	for _, h := range n.heard {
		if len(h.question) > 1 && h.question[1] == kind && (from == "" || h.from == from) && (to == "" || h.to == to) {
			some = append(some, h)
		}
	}
	return some
}

var errCut = errors.New("i/o timeout")

func newFakeNet() *fakeNet {
	return &fakeNet{
		ports: map[string]*fakePort{}, cuts: map[[2]string]bool{}, mute: map[string]bool{}, alien: map[string]bool{},
		conns: map[net.Conn][2]string{}, dials: map[string]int{},
	}
}

// fakePort is the Net of one address.
type fakePort struct {
	net     *fakeNet
	addr    string
	packets chan fakePacket
	streams chan net.Conn

	mu       sync.Mutex              // guards the fields below
	flying   map[byte]map[string]int // questions under way, by kind and address
	most     map[byte]int            // highest number of simultaneous questions, by kind
	double   int                     // highest number of simultaneous questions of one kind to one address
	answer   func(from Asker, question []byte) []byte
	cluster  func() *Cluster // the instance at this address; nil if none
	instance nodeid.ID
}

type fakePacket struct {
	data []byte
	from string
	at   time.Time
}

func (n *fakeNet) listen(addr string) *fakePort {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := &fakePort{net: n, addr: addr, packets: make(chan fakePacket, 256), streams: make(chan net.Conn, 16)}
	n.ports[addr] = p
	return p
}

func (n *fakeNet) unlisten(p *fakePort) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ports[p.addr] == p {
		delete(n.ports, p.addr)
	}
}

// cut blocks all traffic between two addresses and breaks the streams between them.
func (n *fakeNet) cut(a, b string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[[2]string{a, b}], n.cuts[[2]string{b, a}] = true, true
	for c, ends := range n.conns {
		if ends == [2]string{a, b} || ends == [2]string{b, a} {
			c.Close()
			delete(n.conns, c)
		}
	}
}

// muffle makes an address silent, or lets it answer.
func (n *fakeNet) muffle(addr string, silent bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute[addr] = silent
}

func (n *fakeNet) heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
}

func (n *fakeNet) reach(ctx context.Context, from, to string) (*fakePort, error) {
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	n.mu.Lock()
	p, silent, alien := n.ports[to], n.mute[to] || n.cuts[[2]string{from, to}], n.alien[to]
	n.mu.Unlock()
	switch {
	case silent:
		<-ctx.Done()
		return nil, errCut
	case alien:
		return nil, ErrForeign
	case p == nil:
		return nil, ErrRefused
	}
	return p, nil
}

func (p *fakePort) serve(instance nodeid.ID, answer func(Asker, []byte) []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer != nil {
		p.answer = answer
	}
	p.instance = instance
}

// These kinds are the second byte of the questions that fakeNet itself defines. Package founding
// defines the others.
const (
	kindStatusQuery = 0x41
	kindProbe       = 0x44
)

func nameOf(kind byte) string {
	switch kind {
	case kindPrepare:
		return "prepare"
	case kindAnnounce:
		return "announcement"
	case kindProbe:
		return "probe"
	case kindStatusQuery:
		return "status query"
	}
	return "question"
}

func (p *fakePort) Ask(ctx context.Context, addr string, to nodeid.ID, question []byte) (reply []byte, from nodeid.ID,
	err error) {
	from, err = p.exchange(ctx, addr, to, question, func(other *fakePort, self Asker) bool {
		other.mu.Lock()
		answer := other.answer
		other.mu.Unlock()
		if answer != nil {
			reply = answer(self, question)
		}
		return reply != nil
	})
	return reply, from, err
}

func (p *fakePort) QueryStatus(ctx context.Context, addr string, to nodeid.ID, q StatusQuery) (a StatusReply,
	err error) {
	_, err = p.exchange(ctx, addr, to, []byte{0, kindStatusQuery}, func(other *fakePort, self Asker) (ok bool) {
		if c := other.owner(); c != nil {
			a, ok = c.ReplyStatus(q)
		}
		return ok
	})
	return a, err
}

func (p *fakePort) Probe(ctx context.Context, addr string, to nodeid.ID) error {
	_, err := p.exchange(ctx, addr, to, []byte{0, kindProbe}, func(other *fakePort, _ Asker) bool {
		c := other.owner()
		return c != nil && c.Present()
	})
	return err
}

// owner returns the Cluster at a port, or nil if it has not started.
func (p *fakePort) owner() *Cluster {
	p.mu.Lock()
	cluster := p.cluster
	p.mu.Unlock()
	if cluster == nil {
		return nil
	}
	return cluster()
}

// exchange delivers one question to the instance at an address. If no answer arrives, exchange
// returns the error of ctx.
func (p *fakePort) exchange(
	ctx context.Context, addr string, to nodeid.ID, question []byte, answer func(other *fakePort, self Asker) bool,
) (from nodeid.ID, err error) {
	p.net.mu.Lock()
	if p.net.taped {
		p.net.heard = append(p.net.heard, heard{time.Now(), p.addr, addr, question})
	}
	p.net.mu.Unlock()
	defer p.fly(question, addr)()
	if err := p.net.failing(nameOf(question[1])); err != nil {
		return from, err
	}
	other, err := p.net.reach(ctx, p.addr, addr)
	if err != nil {
		return from, err
	}
	other.mu.Lock()
	instance := other.instance
	other.mu.Unlock()
	if !to.IsZero() && to != instance {
		return from, ErrOther
	}
	p.mu.Lock()
	self := p.instance
	p.mu.Unlock()
	ok := answer(other, Asker{Instance: self, Addr: p.addr})
	other.mu.Lock()
	is := other.instance
	other.mu.Unlock()
	if !ok || is != instance { // a new incarnation does not answer for the previous one
		<-ctx.Done()
		return from, ctx.Err()
	}
	return instance, nil
}

// fly counts a question as under way until the returned function is called.
func (p *fakePort) fly(question []byte, addr string) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	kind := question[1]
	if p.flying == nil {
		p.flying, p.most = map[byte]map[string]int{}, map[byte]int{}
	}
	if p.flying[kind] == nil {
		p.flying[kind] = map[string]int{}
	}
	p.flying[kind][addr]++
	p.double = max(p.double, p.flying[kind][addr])
	all := 0
	for _, n := range p.flying[kind] {
		all += n
	}
	p.most[kind] = max(p.most[kind], all)
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.flying[kind][addr]--
	}
}

func (p *fakePort) WriteTo(b []byte, addr string) error {
	p.net.mu.Lock()
	to := p.net.ports[addr]
	lost := to == nil || p.net.mute[addr] || p.net.cuts[[2]string{p.addr, addr}]
	p.net.mu.Unlock()
	if lost {
		return nil
	}
	select {
	case to.packets <- fakePacket{data: append([]byte(nil), b...), from: p.addr, at: time.Now()}:
	default:
	}
	return nil
}

func (p *fakePort) ReadPacket(ctx context.Context) ([]byte, string, time.Time, error) {
	select {
	case k := <-p.packets:
		return k.data, k.from, k.at, nil
	case <-ctx.Done():
		return nil, "", time.Time{}, ctx.Err()
	}
}

func (p *fakePort) DialStream(ctx context.Context, addr string) (net.Conn, error) {
	p.net.mu.Lock()
	p.net.dials[addr]++
	p.net.mu.Unlock()
	if err := p.net.failing("stream"); err != nil {
		return nil, err
	}
	to, err := p.net.reach(ctx, p.addr, addr)
	if err != nil {
		return nil, err
	}
	near, far := net.Pipe()
	select {
	case to.streams <- far:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.net.mu.Lock()
	p.net.conns[near] = [2]string{p.addr, addr}
	p.net.mu.Unlock()
	return near, nil
}

func (p *fakePort) AcceptStream(ctx context.Context) (net.Conn, error) {
	select {
	case c := <-p.streams:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
