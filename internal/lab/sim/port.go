package sim

import (
	"errors"
	"maps"
	"slices"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/cluster"
	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
)

// site is what the processes find around them.
type site struct {
	*world
	net   *network
	watch *watch
	ports map[*machine]*port // of the process that runs there
}

// receiver is the process behind a port.
type receiver interface {
	identity() identity
	frame(e *end, f frame)
	down(instance nodeid.ID) // a stream has ended, or none could be opened
	answer(from founding.Asker, q query, then func(reply))
	// snapshot takes a snapshot for the replica with a raft ID, and reports whether it does.
	snapshot(from identity, to uint64, m *raftpb.Message) bool
}

// port is the listener of a process, with its streams.
type port struct {
	*life
	w  *site
	to receiver

	links   map[nodeid.ID][]*end
	dialing map[nodeid.ID][]frame
	backOff map[nodeid.ID]time.Duration
}

func newPort(w *site, m *machine) *port {
	w.streams++
	return &port{
		life: &life{w: w.world, m: m, instance: w.newID(), stream: w.streams}, w: w,
		links: map[nodeid.ID][]*end{}, dialing: map[nodeid.ID][]frame{}, backOff: map[nodeid.ID]time.Duration{},
	}
}

// query is a founding query, a probe for an instance at an address, or a status query to the
// leader.
type query struct {
	body   []byte
	probe  bool
	status *cluster.StatusQuery
}

type reply struct {
	from   nodeid.ID // the instance that has answered, as its TLS key would prove
	body   []byte
	status cluster.StatusReply
}

var errLost = errors.New("sim: it is not sent")

// queuedWhileDialing is the largest number of frames that wait while a stream is being opened.
const queuedWhileDialing = 64

// send sends a frame on the stream to a peer. If there is no stream and an address is given, send
// opens one. A nil error does not mean that the frame arrives.
func (p *port) send(to nodeid.ID, addr string, f frame) error {
	w := p.w
	if p.group == 0 {
		return errLost
	}
	if w.befalls(dropped, w.odds.drop/4, p.m.name) {
		w.loses(p.m.name, w.names[to], "lost: %v", f)
		return errLost
	}
	f.from = p.to.identity()
	if links := p.links[to]; len(links) > 0 {
		links[len(links)-1].send(f)
		return nil
	}
	if waiting, dialing := p.dialing[to]; dialing {
		if len(waiting) >= queuedWhileDialing {
			w.loses(p.m.name, w.names[to], "no stream yet, and the queue is full: %v", f)
			return errLost
		}
		p.dialing[to] = append(waiting, f)
		return nil
	}
	if addr == "" || w.now < p.backOff[to] {
		w.loses(p.m.name, w.names[to], "no stream: %v", f)
		return errLost
	}
	p.dialing[to] = []frame{f}
	w.after(w.net.hop(), func() { p.dial(to, addr, w.now+dialTimeout) })
	return nil
}

func (p *port) dial(to nodeid.ID, addr string, until time.Duration) {
	w := p.w
	if p.dead {
		return
	}
	m := w.net.at(addr)
	asleep := m != nil && w.ports[m] != nil && w.now < m.pausedUntil
	switch {
	case m == nil || asleep || !w.net.linked(p.m, m):
		if w.now < until {
			w.after(w.between(100*time.Millisecond, time.Second), func() { p.dial(to, addr, until) })
			return
		}
		p.undialed(to)
	case w.ports[m] == nil || w.ports[m].instance != to || w.ports[m] == p:
		w.after(w.net.hop(), func() { p.undialed(to) })
	default:
		w.after(w.net.hop()+w.between(0, w.net.dialing), func() { p.dialed(to, w.ports[m]) })
	}
}

// undialed handles a failed dial, in the same way as the end of a stream.
func (p *port) undialed(to nodeid.ID) {
	if _, dialing := p.dialing[to]; p.dead || !dialing {
		return
	}
	for _, f := range p.dialing[to] {
		p.w.loses(p.m.name, p.w.names[to], "no stream could be opened: %v", f)
	}
	delete(p.dialing, to)
	p.backOff[to] = p.w.now + p.w.between(20*time.Millisecond, 400*time.Millisecond)
	if len(p.links[to]) == 0 {
		p.to.down(to)
	}
}

func (p *port) dialed(to nodeid.ID, other *port) {
	waiting, dialing := p.dialing[to]
	if p.dead || !dialing {
		return
	}
	if other == nil || other.dead || other.instance != to {
		p.undialed(to)
		return
	}
	delete(p.dialing, to)
	e := p.openTo(other)
	if e == nil {
		e = connect(p, other)
	}
	for _, f := range waiting {
		f.from = p.to.identity()
		e.send(f)
	}
}

// openTo returns a stream to another process, or nil. The stream is open at both ends. A process
// that has just dialed uses this stream instead of the new connection, because frames on a second
// stream could overtake those on the first. The transport does the same.
func (p *port) openTo(other *port) *end {
	for _, e := range p.links[other.instance] {
		if e.other.p == other && e.other.open {
			return e
		}
	}
	return nil
}

// hangUp closes all streams. It sorts them, because the order of a map is random.
func (p *port) hangUp() {
	for _, peer := range slices.SortedFunc(maps.Keys(p.links), nodeid.Compare) {
		for _, e := range slices.Clone(p.links[peer]) {
			e.close()
		}
	}
}

// lost reports the end of a stream, as the transport does, even if another stream to the same peer
// exists.
func (p *port) lost(e *end) {
	p.links[e.peer] = without(p.links[e.peer], e)
	p.to.down(e.peer)
}

type end struct {
	p      *port
	other  *end
	peer   nodeid.ID // instance at the other end
	open   bool
	queue  []frame // sent and not delivered, in order
	lastAt time.Duration
	heard  time.Duration // when the peer was last reachable
}

// connect opens a stream between two processes. It first ends any earlier stream that one of them
// still has, and drops the frames on it, as the transport does.
func connect(a, b *port) *end {
	for _, e := range slices.Concat(a.links[b.instance], b.links[a.instance]) {
		e.drop("a newer stream")
		e.other.drop("a newer stream")
		e.close()
	}
	x := &end{p: a, peer: b.instance, open: true, heard: a.w.now}
	y := &end{p: b, peer: a.instance, open: true, heard: a.w.now}
	x.other, y.other = y, x
	a.links[x.peer] = append(a.links[x.peer], x)
	b.links[y.peer] = append(b.links[y.peer], y)
	a.w.after(keepalive/3, x.probe)
	a.w.after(keepalive/3, y.probe)
	return x
}

// probe simulates the keepalive of one end. It closes the stream if the peer was unreachable for
// longer than keepalive.
func (e *end) probe() {
	if !e.open || e.p.dead {
		return
	}
	w := e.p.w
	there := e.other.open && !e.other.p.dead && w.now >= e.other.p.m.pausedUntil
	if there && w.net.linked(e.p.m, e.other.p.m) {
		e.heard = w.now
	}
	if w.now-e.heard > keepalive && w.now >= e.p.m.pausedUntil {
		w.note("%s gives up its stream to %x", e.p.m.name, e.peer)
		e.close()
		return
	}
	w.after(keepalive/3, e.probe)
}

func (e *end) send(f frame) {
	w := e.p.w
	at := max(w.now+w.net.hop(), e.lastAt)
	e.lastAt = at
	e.queue = append(e.queue, f)
	w.after(at-w.now, e.arrive)
}

// drop loses what was sent and has not arrived.
func (e *end) drop(why string) {
	for _, f := range e.queue {
		e.p.w.loses(e.p.m.name, e.other.p.m.name, "%s: %v", why, f)
	}
	e.queue = nil
}

// arrive delivers the first frame in the queue, or tries again later if the link is cut.
func (e *end) arrive() {
	w := e.p.w
	if len(e.queue) == 0 {
		return
	}
	if w.net.blocked(e.p.m, e.other.p.m) {
		w.after(w.between(20*time.Millisecond, 300*time.Millisecond), e.arrive)
		return
	}
	f := e.queue[0]
	e.queue = e.queue[1:]
	if e.other.p.dead || !e.other.open {
		w.loses(e.p.m.name, e.other.p.m.name, "nothing receives it any more: %v", f)
	}
	if e.other.p.dead && w.ports[e.other.p.m] != nil {
		e.close() // the new process on that machine does not have this stream
		return
	}
	if !e.other.open || e.other.p.dead {
		return
	}
	w.mark('f', nodeidtest.Number(f.from.instance),
		uint64(len(f.renewals)+len(f.commands)<<8+len(f.replies)<<16+len(f.raft)<<24))
	e.other.heard = w.now
	e.other.p.to.frame(e.other, f)
	// a real stream never repeats a frame, but the protocol must tolerate it
	if w.befalls(repeated, w.odds.repeat, e.other.p.m.name) {
		w.after(w.between(0, replica.ElectionTimeout), func() {
			if e.other.open && !e.other.p.dead {
				e.other.p.to.frame(e.other, f)
			}
		})
	}
}

// close closes the stream at this end. The other end is closed later, when all sent frames have
// arrived.
func (e *end) close() {
	if !e.open {
		return
	}
	e.open = false
	if !e.p.dead {
		e.p.lost(e)
	}
	e.p.w.after(e.p.w.net.hop(), e.finish)
}

func (e *end) finish() {
	w := e.p.w
	switch {
	case !e.other.open:
	case w.net.blocked(e.p.m, e.other.p.m) || len(e.queue) > 0:
		w.after(w.between(20*time.Millisecond, 300*time.Millisecond), e.finish)
	default:
		e.other.close()
	}
}
