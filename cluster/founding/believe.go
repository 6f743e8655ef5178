package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file decides which instances are believed about the group's configuration. The package
// comment gives the reasons.

// Guide sets the leader to which this instance is attached. Zero means none.
func (c *Core) Guide(leader nodeid.ID) { c.guide = leader }

func (c *Core) votes(instance nodeid.ID) bool {
	return slices.ContainsFunc(c.newest(), func(v Voter) bool { return v.Instance == instance && !v.Learner })
}

func (c *Core) believes(from nodeid.ID) bool {
	return c.votes(from) || !from.IsZero() && from == c.guide
}

// hinted handles a configuration from an instance that is not believed. With a leader it asks the
// known voters; without a leader they are asked anyway. Equal hints from several unknown instances
// prove nothing, because any process can create new IDs.
func (c *Core) hinted(at uint64, voters []Voter) {
	if at <= c.at || c.phase != Member || c.settling {
		return
	}
	if c.leader {
		c.askForVoters()
	}
	if c.leader || !c.lost() {
		return
	}
	if holds(voters, c.raft) {
		return // the newer configuration names this replica, so its voters will contact it
	}
	if c.durable {
		return
	}
	c.doomed = "no voter that is known here of group " + groupName(c.group) + " has answered for " +
		c.unguided().Round(time.Second).String() +
		", and a newer configuration of it is in reach"
}

// unguided returns the time since another known voter last answered or a leader was last known.
func (c *Core) unguided() time.Duration { return c.now - max(c.guided, c.since) }

// lost reports whether the known voters have been silent for so long that all may have been
// replaced.
func (c *Core) lost() bool {
	return c.unguided() > max(c.settings.SessionTTL, c.rulesOf.SessionTTL)
}
