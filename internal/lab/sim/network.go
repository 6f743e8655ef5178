package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/internal/replica"
)

// network simulates the streams and queries between machines. A link is cut in one direction. As
// with TCP, frames that were sent wait until the link heals or the stream is closed.
type network struct {
	w       *world
	cut     map[[2]int]bool // changed only by sever, join and mend; the order of a map is random
	latency time.Duration   // usual one-way delay
	jitter  float64         // chance of a long delay
	repeat  float64         // chance that a frame or a raft message is delivered twice
	drop    float64         // chance that a send fails because its queue is full
	dialing time.Duration   // longest time to open a connection; queries do not wait for it
}

const (
	dialTimeout = 3 * time.Second
	keepalive   = 15 * time.Second
)

func newNetwork(w *world) network {
	return network{w: w, cut: map[[2]int]bool{}, latency: w.cfg.Latency}
}

func (n *network) hop() time.Duration {
	d := n.w.between(n.latency/4, n.latency*2)
	if n.w.befalls(late, n.jitter, networkLane) {
		d += n.w.between(0, 3*n.w.cfg.TTL)
	}
	return d
}

// sever cuts the link from a to b.
func (n *network) sever(a, b *machine) {
	n.cut[[2]int{a.id, b.id}] = true
	n.w.line.begin(timeline.Cut, n.w.page(), a.name, "nothing gets to "+b.name)
}

func (n *network) join(a, b *machine) {
	delete(n.cut, [2]int{a.id, b.id})
	n.w.line.end(n.w.page(), a.name, "nothing gets to "+b.name)
}

// mend joins all machines.
func (n *network) mend() {
	for _, a := range n.w.machines {
		for _, b := range n.w.machines {
			n.join(a, b)
		}
	}
}

func (n *network) blocked(a, b *machine) bool { return a != b && n.cut[[2]int{a.id, b.id}] }

func (n *network) linked(a, b *machine) bool { return !n.blocked(a, b) && !n.blocked(b, a) }

type frame struct {
	from     identity
	renewals []byte
	commands []byte
	replies  []byte
	raft     []*raftpb.Message
	retired  bool // the replica of the sender has retired
}

func (f frame) String() string {
	var parts []string
	for _, part := range []struct {
		name string
		size int
	}{{"renewals", len(f.renewals)}, {"commands", len(f.commands)}, {"replies", len(f.replies)}} {
		if part.size > 0 {
			parts = append(parts, fmt.Sprintf("%d bytes of %s", part.size, part.name))
		}
	}
	for _, m := range f.raft {
		parts = append(parts, fmt.Sprintf("%v of term %d", m.GetType(), m.GetTerm()))
	}
	if f.retired {
		parts = append(parts, "it has retired")
	}
	return strings.Join(parts, ", ")
}

// identity is what a process reports about itself at the beginning of a stream.
type identity struct {
	instance    nodeid.ID
	group, raft uint64
	addr        string
}

type end struct {
	p      *proc
	other  *end
	peer   nodeid.ID // instance at the other end
	open   bool
	queue  []frame // sent and not delivered, in order
	lastAt time.Duration
	heard  time.Duration // when the peer was last reachable
}

// connect opens a stream between two processes. It first ends any earlier stream that one of them
// still has, and drops the frames on it, as the transport does.
func (n *network) connect(a, b *proc) *end {
	for _, e := range slices.Concat(a.links[b.instance], b.links[a.instance]) {
		e.drop("a newer stream")
		e.other.drop("a newer stream")
		e.close()
	}
	x := &end{p: a, peer: b.instance, open: true, heard: n.w.now}
	y := &end{p: b, peer: a.instance, open: true, heard: n.w.now}
	x.other, y.other = y, x
	a.links[x.peer] = append(a.links[x.peer], x)
	b.links[y.peer] = append(b.links[y.peer], y)
	n.w.after(keepalive/3, x.probe)
	n.w.after(keepalive/3, y.probe)
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
		e.p.w.loses(e.p.m, e.other.p.m.name, "%s: %v", why, f)
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
		w.loses(e.p.m, e.other.p.m.name, "nothing receives it any more: %v", f)
	}
	if e.other.p.dead && e.other.p.m.proc != nil {
		e.close() // the new process on that machine does not have this stream
		return
	}
	if !e.other.open || e.other.p.dead {
		return
	}
	w.mark('f', nodeidtest.Number(f.from.instance),
		uint64(len(f.renewals)+len(f.commands)<<8+len(f.replies)<<16+len(f.raft)<<24))
	e.other.heard = w.now
	e.other.p.frame(e.other, f)
	// a real stream never repeats a frame, but the protocol must tolerate it
	if w.befalls(repeated, w.net.repeat, e.other.p.m.name) {
		w.after(w.between(0, replica.ElectionTimeout), func() {
			if e.other.open && !e.other.p.dead {
				e.other.p.frame(e.other, f)
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

// lost reports the end of a stream, as the transport does, even if another stream to the same peer
// exists.
func (p *proc) lost(e *end) {
	p.links[e.peer] = without(p.links[e.peer], e)
	p.down(e.peer)
}
