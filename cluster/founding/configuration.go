package founding

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// The number of a configuration is the index of its log entry, or 1 for the charter's
// configuration.

// Voters records a configuration that this instance's replica has applied. A newer configuration
// replaces the known one, and a configuration with the same number updates addresses. If an older
// configuration names this instance's replica, the replica was removed since then.
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

// take replaces the known configuration with a newer one and reports whether it did. It removes
// this instance's replica if the old configuration names it and the new one does not.
func (c *Core) take(at uint64, voters []Voter) bool {
	if len(voters) == 0 || len(voters) > maxVoters {
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
		c.born = true // no configuration changes before the group is founded
	case named && !c.named():
		c.remove()
	}
	return true
}

func (c *Core) place(voters []Voter) {
	c.voters, c.stale = slices.Clone(voters), true
	for _, v := range c.voters {
		if c.durable && v.Instance != c.instance {
			c.alive(v.Instance, v.Life, 0, v.Addr, false)
		}
	}
}

func (c *Core) newest() []Voter {
	if len(c.voters) > 0 || c.charter == nil {
		return c.voters
	}
	return c.charter.Voters
}

func (c *Core) named() bool { return holds(c.newest(), c.raft) }

func holds(voters []Voter, raft uint64) bool {
	return raft != 0 && slices.ContainsFunc(voters, func(v Voter) bool { return v.Raft == raft })
}

// At returns the number of the newest known configuration: 1 for the configuration of the charter,
// and 0 without a group.
func (c *Core) At() uint64 { return c.at }

// Adopt records the group's settings after a change through the log (rule 15). From then on this
// instance reports, stores and uses these settings.
func (c *Core) Adopt(now time.Duration, group uint64, s Settings) {
	c.now = now
	if c.group != group || c.phase != Member {
		return
	}
	s = s.normal()
	if s.Solo == c.rulesOf.Solo && c.rulesOf.differs(s) == "" {
		return
	}
	c.rulesOf = s
	c.revision++
}
