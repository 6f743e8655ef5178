package instance

import (
	"context"
	"time"

	"github.com/mortise-lock/mortise/internal/replica"
)

// leaderKnown reports to package cluster whether a leader is known. Gossip and founding depend on
// the leader.
func (n *Instance) leaderKnown() {
	n.leading.mu.Lock()
	defer n.leading.mu.Unlock()
	view := n.view()
	n.noteLeader(view)
	known := view.KnowsLeader(n.leading.attached.Load())
	n.leading.look(known, n.env.clock.Now())
	if c := n.cluster(); c != nil {
		c.HasLeader(known)
	}
}

// noteLeader reports a change of leader to the hooks. The caller must hold leading.mu.
func (n *Instance) noteLeader(view *replica.View) {
	if n.config.Hooks == nil || n.cluster() == nil {
		return
	}
	is := lead{instance: n.client.Status().Leader.ID}
	if view != nil {
		role := view.Role()
		is = lead{view.Leader(n.cluster()).Instance, role.Term}
	}
	state, again := n.leading.note(&is)
	if state == "" {
		return
	}
	e := NodeEvent{State: state, Term: is.term}
	if !is.instance.IsZero() {
		c := n.cluster().Status()
		e.Leader = n.names(&c).Name(is.instance)
	}
	if !again {
		n.tell(e)
	}
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
	n.noteLeader(n.view())
}
