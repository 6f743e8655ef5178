package instance

import (
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
)

// leading is the leader as this instance sees it, and as its observers were told.
type leading struct {
	attached atomic.Bool  // its session is attached to a leader
	without  atomic.Int64 // clock.Time since which it has no leader. Zero means that it has one, or never had

	mu   sync.Mutex // makes reading and saying whether there is a leader one step; guards the rest
	now  lead       // the zero instance means none
	last lead       // the last one that was an instance
}

// lead is a leader as observers were told of it.
type lead struct {
	instance nodeid.ID // zero: none
	term     uint64
}

// phaseChanged takes whether this instance's session is attached to a leader; the client calls it
// when its phase changes.
func (n *Instance) phaseChanged(phase client.Phase) {
	n.leading.attached.Store(phase == client.Attached)
	n.leaderKnown()
	if phase == client.Attached {
		n.learnNames()
	}
}

// leaderKnown passes on what gossip and birth go by: whether there is a leader.
func (n *Instance) leaderKnown() {
	n.leading.mu.Lock() // so that what was true earlier is not said later; never held across a wait
	defer n.leading.mu.Unlock()
	r := n.replica.Load()
	n.noteLeader(r)
	known := r.view().KnowsLeader(n.leading.attached.Load())
	if known {
		n.leading.without.Store(0)
	} else {
		n.leading.without.CompareAndSwap(0, int64(n.env.clock.Now()))
	}
	if c := n.cluster(); c != nil {
		c.HasLeader(known)
	}
}

// noteLeader reports another leader to the observers. The caller holds the mutex of leading.
func (n *Instance) noteLeader(r *ownReplica) {
	if n.config.Hooks == nil || n.cluster() == nil {
		return
	}
	is := lead{instance: n.client.Status().Leader.Peer}
	if r != nil {
		role := r.Role()
		is = lead{r.Leader(n.cluster()).Instance, role.Term}
	}
	if is.instance.IsZero() {
		is.term = 0
	}
	if is == n.leading.now {
		return
	}
	e := NodeEvent{State: stateNew, Term: is.term}
	switch {
	case is.instance.IsZero():
		e.State = stateNone
	case is == n.leading.last, is.instance == n.leading.last.instance && (is.term == 0 || n.leading.last.term == 0):
		e.State = stateAgain
	}
	// only its term has become known, or is not any more
	again := e.State == stateAgain && !n.leading.now.instance.IsZero()
	if n.leading.now = is; !is.instance.IsZero() {
		n.leading.last = is
		c := n.cluster().Status()
		e.Instance, e.Name = is.instance.String(), n.people(&c).Name(is.instance)
	}
	if !again {
		n.tell(func(h *Hooks) func(NodeEvent) { return h.Leader }, e)
	}
}

// leaderMoved looks again who leads: the address book has changed.
func (n *Instance) leaderMoved() {
	if n.config.Hooks == nil {
		return
	}
	n.leading.mu.Lock()
	defer n.leading.mu.Unlock()
	n.noteLeader(n.replica.Load())
}
