package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// queuedWhileDialing is the largest number of frames that wait while a stream is being opened.
const queuedWhileDialing = 64

// send sends a frame on the stream to a peer. If there is no stream and an address is given, send
// opens one. A nil error does not mean that the frame arrives.
func (p *proc) send(to nodeid.ID, addr string, f frame) error {
	w := p.w
	if p.group == 0 {
		return errLost
	}
	if w.befalls(dropped, w.net.drop/4, p.m.name) {
		w.loses(p.m, w.watch.names[to], "lost: %v", f)
		return errLost
	}
	f.from = p.identity()
	if links := p.links[to]; len(links) > 0 {
		links[len(links)-1].send(f)
		return nil
	}
	if waiting, dialing := p.dialing[to]; dialing {
		if len(waiting) >= queuedWhileDialing {
			w.loses(p.m, w.watch.names[to], "no stream yet, and the queue is full: %v", f)
			return errLost
		}
		p.dialing[to] = append(waiting, f)
		return nil
	}
	if addr == "" || w.now < p.backOff[to] {
		w.loses(p.m, w.watch.names[to], "no stream: %v", f)
		return errLost
	}
	p.dialing[to] = []frame{f}
	w.after(w.net.hop(), func() { p.dial(to, addr, w.now+dialTimeout) })
	return nil
}

func (p *proc) dial(to nodeid.ID, addr string, until time.Duration) {
	w := p.w
	if p.dead {
		return
	}
	m := w.at(addr)
	asleep := m != nil && m.proc != nil && w.now < m.pausedUntil
	switch {
	case m == nil || asleep || !w.net.linked(p.m, m):
		if w.now < until {
			w.after(w.between(100*time.Millisecond, time.Second), func() { p.dial(to, addr, until) })
			return
		}
		p.undialed(to)
	case m.proc == nil || m.proc.instance != to || m.proc == p:
		w.after(w.net.hop(), func() { p.undialed(to) })
	default:
		w.after(w.net.hop()+w.between(0, w.net.dialing), func() { p.dialed(to, m.proc) })
	}
}

// undialed handles a failed dial, in the same way as the end of a stream.
func (p *proc) undialed(to nodeid.ID) {
	if _, dialing := p.dialing[to]; p.dead || !dialing {
		return
	}
	for _, f := range p.dialing[to] {
		p.w.loses(p.m, p.w.watch.names[to], "no stream could be opened: %v", f)
	}
	delete(p.dialing, to)
	p.backOff[to] = p.w.now + p.w.between(20*time.Millisecond, 400*time.Millisecond)
	if len(p.links[to]) == 0 {
		p.down(to)
	}
}

func (p *proc) dialed(to nodeid.ID, other *proc) {
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
		e = p.w.net.connect(p, other)
	}
	for _, f := range waiting {
		f.from = p.identity()
		e.send(f)
	}
}

// openTo returns a stream to another process, or nil. The stream is open at both ends. A process
// that has just dialed uses this stream instead of the new connection, because frames on a second
// stream could overtake those on the first. The transport does the same.
func (p *proc) openTo(other *proc) *end {
	for _, e := range p.links[other.instance] {
		if e.other.p == other && e.other.open {
			return e
		}
	}
	return nil
}

// down reports that a stream to an instance has ended, or that none could be opened.
func (p *proc) down(instance nodeid.ID) {
	if p.insider != nil {
		return
	}
	p.w.mark('d', nodeidtest.Number(p.instance), nodeidtest.Number(instance))
	p.sessions.Down(instance)
	if r := p.replica; r != nil {
		r.down(instance)
	}
	inbox{p}.Look()
}

// hangUp closes all streams. It sorts them, because the order of a map is random.
func (p *proc) hangUp() {
	for _, peer := range slices.SortedFunc(maps.Keys(p.links), nodeid.Compare) {
		for _, e := range slices.Clone(p.links[peer]) {
			e.close()
		}
	}
}
