package founding

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// This file keeps the newest known configuration of the group. The number of a configuration is the
// index of the log entry that made it; the founding configuration has number 1. So on every
// instance the higher number is the newer configuration.

// Voters records a configuration of the group that this instance's log has applied, or newer
// addresses for a known one. A newer configuration replaces the known one. The same configuration
// updates addresses. An older configuration only shows that this instance was a member of it.
func (c *Core) Voters(now time.Duration, group, at uint64, voters []Voter) {
	c.now = now
	if c.group != group || c.phase == Newborn || c.take(at, voters) {
		return
	}
	if at != c.at || len(voters) > maxVoters || (c.phase == Bound && !c.durable) {
		return
	}
	if !slices.Equal(c.voters, voters) {
		c.revision++
	}
	c.place(voters)
}

// hear handles a configuration that another instance has reported. It is only a hint if that
// instance is not believed.
func (c *Core) hear(from nodeid.ID, at uint64, voters []Voter) {
	if len(voters) == 0 {
		return
	}
	if !c.believes(from) {
		c.hinted(at, voters)
		return
	}
	c.events = append(c.events, Event{Kind: Heard, Group: c.group, At: at, Voters: slices.Clone(voters)})
	c.take(at, voters)
}

// take replaces the known configuration by a newer one and reports whether it did. The replica of
// this instance was removed if the old configuration names it and the new one does not. A replica
// that was only prepared is in no configuration yet.
func (c *Core) take(at uint64, voters []Voter) bool {
	if len(voters) == 0 || len(voters) > maxVoters { // no message can carry so many
		return false
	}
	named := c.named()
	if at <= c.at {
		if at < c.at && c.phase == Member && !named && holds(voters, c.raft) {
			c.remove()
		}
		return false
	}
	c.at = at
	c.revision++
	c.place(voters)
	switch {
	case c.phase == Bound:
		c.born = true // no configuration changes before the group is born
	case named && !c.named():
		c.remove()
	}
	return true
}

func (c *Core) place(voters []Voter) {
	c.voters, c.stale = slices.Clone(voters), true
	for _, v := range c.voters {
		if c.durable && v.Instance != c.instance {
			c.alive(v.Instance, v.Life, v.Addr, false)
		}
	}
}

// newest returns the newest known configuration, with the newest known addresses.
func (c *Core) newest() []Voter {
	if len(c.voters) > 0 || c.charter == nil {
		return c.voters
	}
	return c.charter.Voters
}

// named reports whether the newest known configuration names this instance's replica.
func (c *Core) named() bool { return holds(c.newest(), c.raft) }

func holds(voters []Voter, raft uint64) bool {
	return raft != 0 && slices.ContainsFunc(voters, func(v Voter) bool { return v.Raft == raft })
}

// At returns the number of the newest known configuration of the group: 1 for the founding one, 0
// without a group.
func (c *Core) At() uint64 { return c.at }

// Adopt records that the group's settings have changed (rule 15). From then on this instance sends
// the new settings to others, stores them, and compares its own configuration with them at the next
// start.
func (c *Core) Adopt(now time.Duration, group uint64, s Settings) {
	c.now = now
	if c.group != group || c.phase != Member {
		return
	}
	s = s.normal()
	if s.Solo == c.rulesOf.Solo && c.rulesOf.difference(s) == "" {
		return
	}
	c.rulesOf = s
	c.revision++
}
