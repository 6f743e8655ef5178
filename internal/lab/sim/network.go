package sim

import (
	"fmt"
	"strings"
	"time"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/lab/timeline"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// network simulates the streams and queries between machines. A link is cut in one direction. As
// with TCP, frames that were sent wait until the link heals or the stream is closed.
type network struct {
	w        *world
	machines []*machine
	hidden   *machine        // that of the insider, if there is one
	cut      map[[2]int]bool // changed only by sever, join and mend; the order of a map is random
	latency  time.Duration   // usual one-way delay
	dialing  time.Duration   // longest time to open a connection; queries do not wait for it
}

const (
	dialTimeout = 3 * time.Second
	keepalive   = 15 * time.Second
)

func newNetwork(w *world) *network {
	return &network{w: w, cut: map[[2]int]bool{}, latency: w.cfg.Latency}
}

func (n *network) hop() time.Duration {
	d := n.w.between(n.latency/4, n.latency*2)
	if n.w.befalls(late, n.w.odds.jitter, networkLane) {
		d += n.w.between(0, 3*n.w.cfg.TTL)
	}
	return d
}

// sever cuts the link from a to b.
func (n *network) sever(a, b *machine) {
	n.cut[[2]int{a.id, b.id}] = true
	n.w.line.Begin(timeline.Cut, n.w.page(), a.name, "nothing gets to "+b.name)
}

func (n *network) join(a, b *machine) {
	delete(n.cut, [2]int{a.id, b.id})
	n.w.line.End(timeline.Cut, n.w.page(), a.name, "nothing gets to "+b.name)
}

// mend joins all machines.
func (n *network) mend() {
	for _, a := range n.machines {
		for _, b := range n.machines {
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
	life        uint64 // of its starts with one disk
}

func (n *network) at(addr string) *machine {
	if n.hidden != nil && n.hidden.addr == addr {
		return n.hidden
	}
	for _, m := range n.machines {
		if m.addr == addr {
			return m
		}
	}
	return nil
}
