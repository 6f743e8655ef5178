package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// Guide sets the leader to which this instance is attached. Zero means none.
func (c *Core) Guide(leader nodeid.ID) { c.guide = leader }

func (c *Core) votes(instance nodeid.ID) bool {
	return slices.ContainsFunc(c.newest(), func(v Voter) bool { return v.Instance == instance && !v.Learner })
}

func (c *Core) believes(from nodeid.ID) bool {
	return c.votes(from) || !from.IsZero() && from == c.guide
}

// hinted handles a configuration from an instance that is not believed. Equal hints from several
// instances prove nothing, because any process can create new IDs.
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
	c.doomed = "none of the voters of group " + groupName(c.group) + " that this instance knows has answered for " +
		c.unguided().Round(time.Second).String() +
		", and the group has a newer configuration"
}

func (c *Core) unguided() time.Duration { return c.now - max(c.guided, c.since) }

// lost reports whether all known voters may have been replaced, because they have been silent for
// so long.
func (c *Core) lost() bool {
	return c.unguided() > max(c.settings.SessionTTL, c.rulesOf.SessionTTL)
}
