package founding

import (
	"slices"
	"time"

	"github.com/mortise-lock/mortise/internal/nodeid"
)

// This file says whose word about the group's configuration counts. An instance proves only that it
// is the one that it says it is, and every holder of the secret is some instance. So the word of
// one counts that the configuration known here names as a voter, or that leads: a voter has named
// it, and this instance is attached to it. All else is a hint to ask those.

// Guide takes the leader to which this instance is attached, or zero if it is attached to none.
func (c *Core) Guide(leader nodeid.ID) { c.guide = leader }

// votes reports whether the newest configuration that is known names the instance as a voter.
func (c *Core) votes(instance nodeid.ID) bool {
	return slices.ContainsFunc(c.newest(), func(v Voter) bool { return v.Instance == instance && !v.Learner })
}

// believes reports whether the word of an instance about the group's configuration counts.
func (c *Core) believes(from nodeid.ID) bool {
	return c.votes(from) || !from.IsZero() && from == c.guide
}

// hinted takes a configuration that an instance has told which is not believed. An instance without
// a leader asks the voters that it knows anyway. If none of them has answered for the largest TTL,
// they may all have been replaced while it was cut off: then this life ends and begins anew without
// a group, as a new instance, which has to trust those that it meets.
//
// An instance with a directory does not do that. Its group may need its vote, and its word is what
// other directories go by: those who have been voters keep their IDs. IDs cost nothing, so any
// number of instances that confirm a configuration prove nothing either. It waits for a voter that
// it knows; if all of them have lost their directories, it is for people to empty its own.
func (c *Core) hinted(at uint64, voters []Voter) {
	if at <= c.at || c.phase != Member || c.settling {
		return
	}
	if c.leader {
		c.consult()
	}
	if c.leader || !c.lost() {
		return
	}
	if holds(voters, c.raft) {
		return // it says itself that this replica still counts: its voters will come back
	}
	if c.durable {
		return
	}
	c.doomed = "no voter that is known here of group " + groupName(c.group) + " has answered for " +
		c.unguided().Round(time.Second).String() +
		", and a newer configuration of it is in reach"
}

// unguided is for how long no other voter that is known here has answered.
func (c *Core) unguided() time.Duration { return c.now - max(c.guided, c.since) }

// lost reports whether no voter that is known has answered for so long that all of them may have
// been replaced.
func (c *Core) lost() bool {
	return c.unguided() > max(c.settings.SessionTTL, c.rulesOf.SessionTTL)
}
