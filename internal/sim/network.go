package sim

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/nodeid/nodeidtest"
	"github.com/mortise-lock/mortise/internal/replica"
)

// network carries streams and questions between machines. A cut works in one direction: what is
// sent waits, as with TCP, until the cut heals or the stream is given up.
type network struct {
	w       *world
	cut     map[[2]int]bool // looked up only, never ranged over
	latency time.Duration   // usual one-way delay
	jitter  float64         // chance of a long delay
	repeat  float64         // chance that a frame, or a raft message in it, comes twice
	drop    float64         // chance that a raft message, or a whole send, finds its queue full
	dialing time.Duration   // how long an answered connection may take; questions do not wait for it
}

// These are times of the transport.
const (
	dialTimeout = 3 * time.Second
	keepalive   = 15 * time.Second
)

func newNetwork(w *world) network {
	return network{w: w, cut: map[[2]int]bool{}, latency: w.cfg.Latency}
}

func (n *network) hop() time.Duration {
	d := n.w.between(n.latency/4, n.latency*2)
	if n.w.chance(n.jitter) {
		d += n.w.between(0, 3*n.w.cfg.TTL)
	}
	return d
}

func (n *network) blocked(a, b *machine) bool { return a != b && n.cut[[2]int{a.id, b.id}] }

func (n *network) linked(a, b *machine) bool { return !n.blocked(a, b) && !n.blocked(b, a) }

// frame is what travels in one piece.
type frame struct {
	from     identity
	renewals []byte
	commands []byte
	replies  []byte
	raft     []*raftpb.Message
	retired  bool // the replica of the speaker is over
}

// identity is what a process reports about itself at the head of a stream.
type identity struct {
	instance    nodeid.ID
	group, raft uint64
	addr        string
}

// end is one end of a stream between two processes.
type end struct {
	p      *proc
	other  *end
	peer   nodeid.ID // instance at the other end
	open   bool
	queue  []frame // sent and not arrived, in order
	lastAt time.Duration
	heard  time.Duration // when the peer was last known to be there
}

func (n *network) connect(a, b *proc) *end {
	x := &end{p: a, peer: b.instance, open: true, heard: n.w.now}
	y := &end{p: b, peer: a.instance, open: true, heard: n.w.now}
	x.other, y.other = y, x
	a.links[x.peer] = append(a.links[x.peer], x)
	b.links[y.peer] = append(b.links[y.peer], y)
	n.w.after(keepalive/3, x.probe)
	n.w.after(keepalive/3, y.probe)
	return x
}

// probe is the keepalive of one end.
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

// arrive delivers the first frame in the queue, or tries again later if the way is cut.
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
	if e.other.p.dead && e.other.p.m.proc != nil {
		e.close() // the process that runs there now does not have this stream
		return
	}
	if !e.other.open || e.other.p.dead {
		return
	}
	w.mark('f', nodeidtest.Number(f.from.instance),
		uint64(len(f.renewals)+len(f.commands)<<8+len(f.replies)<<16+len(f.raft)<<24))
	e.other.heard = w.now
	e.other.p.frame(e.other, f)
	if w.chance(w.net.repeat) { // no stream does that; the protocol must tolerate it
		w.after(w.between(0, replica.ElectionTimeout), func() {
			if e.other.open && !e.other.p.dead {
				e.other.p.frame(e.other, f)
			}
		})
	}
}

// close ends the stream at this end. The other end learns it after what was sent, if it can.
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

// finish closes the other end, once everything sent before has arrived.
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

// lost reports the end of a stream, as the transport does, even if another one leads to the same
// peer: what the peer has sent into this one is lost.
func (p *proc) lost(e *end) {
	p.links[e.peer] = without(p.links[e.peer], e)
	p.down(e.peer)
}
