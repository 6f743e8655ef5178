package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file decides which instances are believed about the group's configuration: the voters of the
// newest known configuration, and the leader to which this instance is attached. The package
// comment gives the reasons.

// Guide sets the leader to which this instance is attached. Zero means none.
func (c *Core) Guide(leader nodeid.ID) { c.guide = leader }

func (c *Core) votes(instance nodeid.ID) bool {
	return slices.ContainsFunc(c.newest(), func(v Voter) bool { return v.Instance == instance && !v.Learner })
}

func (c *Core) believes(from nodeid.ID) bool {
	return c.votes(from) || !from.IsZero() && from == c.guide
}

// hinted handles a configuration from an instance that is not believed. If no known voter has
// answered for the largest TTL, this life ends. The next life has to trust the instances that it
// meets.
//
// An instance with a directory does not give up its group. The group may need its vote. Several
// instances that confirm the hint would prove nothing, because an attacker can make any number of
// IDs.
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
		return // the hinted configuration still names this replica, so its voters will contact it
	}
	if c.durable {
		return
	}
	c.doomed = "no voter that is known here of group " + groupName(c.group) + " has answered for " +
		c.unguided().Round(time.Second).String() +
		", and a newer configuration of it is in reach"
}

// unguided returns the time since another known voter last answered.
func (c *Core) unguided() time.Duration { return c.now - max(c.guided, c.since) }

// lost reports whether the known voters were silent for so long that all may have been replaced.
func (c *Core) lost() bool {
	return c.unguided() > max(c.settings.SessionTTL, c.rulesOf.SessionTTL)
}
