package instance

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
)

// leading holds the leader as known to this instance, and the leader that was last reported to
// hooks.
type leading struct {
	attached atomic.Bool
	// The field without contains the clock.Time since which no leader is known. Zero means that a
	// leader is known, or that this instance has not looked for one yet.
	without atomic.Int64

	mu   sync.Mutex // held while the leader is read and reported; guards the fields below
	now  lead       // zero if no leader is known
	last lead       // the last value of now that was not zero
}

type lead struct {
	instance nodeid.ID // zero means none
	term     uint64
}

func (n *Instance) phaseChanged(phase client.Phase) {
	n.leading.attached.Store(phase == client.Attached)
	n.leaderKnown()
	if phase == client.Attached {
		n.learnNames()
	}
}

// leaderKnown reports to package cluster whether a leader is known. Gossip and founding depend on
// the leader.
func (n *Instance) leaderKnown() {
	n.leading.mu.Lock()
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

// noteLeader reports a change of leader to the hooks. The caller must hold leading.mu.
func (n *Instance) noteLeader(r *ownReplica) {
	if n.config.Hooks == nil || n.cluster() == nil {
		return
	}
	is := lead{instance: n.client.Status().Leader.ID}
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
	// The variable again means that the leader is the same, and that only its term has become known
	// or unknown.
	again := e.State == stateAgain && !n.leading.now.instance.IsZero()
	if n.leading.now = is; !is.instance.IsZero() {
		n.leading.last = is
		c := n.cluster().Status()
		e.Leader = n.names(&c).Name(is.instance)
	}
	if !again {
		n.tell(e)
	}
}

const (
	unreachableFor = 3 * time.Second  // an instance that accepts no connection for so long must not lead
	handOverEvery  = 10 * time.Second // time between two attempts
)

// handOvers decides when a leader that accepts no connection hands the leadership to another voter.
// Instances that are not linked to it could get no lock from it. The zero value is ready to use.
type handOvers struct {
	last clock.Time // of the last attempt; zero means none
}

// due reports whether to begin an attempt at the time now, and notes it. since is for how long no
// connection was accepted.
func (h *handOvers) due(now clock.Time, since time.Duration, leads bool) bool {
	if !leads || since < unreachableFor || h.last != 0 && now.Sub(h.last) < handOverEvery {
		return false
	}
	h.last = now
	return true
}

// unreachable is called by the goroutine of the port's listener, which owns handOvers, while no
// connection can be accepted.
func (n *Instance) unreachable(since time.Duration) {
	r := n.replica.Load()
	if r == nil || !n.handOvers.due(n.env.clock.Now(), since, r.Role().Leading) {
		return
	}
	n.logger.Warn("this leader accepts no connections: it hands the leadership to another voter", "since",
		since.Round(time.Millisecond))
	n.Background(func(ctx context.Context) { _ = r.log.Transfer(ctx, 0) }) // a later call tries again
}

func (n *Instance) leaderMoved() {
	if n.config.Hooks == nil {
		return
	}
	n.leading.mu.Lock()
	defer n.leading.mu.Unlock()
	n.noteLeader(n.replica.Load())
}
