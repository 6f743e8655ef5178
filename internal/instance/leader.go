package instance

import "github.com/mortise-lock/mortise/session/client"

// phaseChanged takes whether this instance's session is attached to a leader; the client calls it when its phase changes.
func (n *Instance) phaseChanged(phase client.Phase) {
	n.attached.Store(phase == client.Attached)
	n.leaderKnown()
	if phase == client.Attached {
		n.learnNames()
	}
}

// leaderKnown passes on what gossip and birth go by: whether there is a leader.
func (n *Instance) leaderKnown() {
	n.knowing.Lock() // so that what was true earlier is not said later; never held across a wait
	defer n.knowing.Unlock()
	r := n.replica.Load()
	n.noteLeader(r)
	known := r.view().KnowsLeader(n.attached.Load())
	if known {
		n.without.Store(0)
	} else {
		n.without.CompareAndSwap(0, int64(n.env.clock.Now()))
	}
	if c := n.cluster(); c != nil {
		c.HasLeader(known)
	}
}
