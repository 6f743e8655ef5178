package founding

import (
	"github.com/mortise-lock/mortise/internal/nodeid"
	"slices"
	"time"
)

// This file is the group's configuration as far as it is known here: who its replicas are, and by
// its number how new that is. The number is the index of the log entry that made the configuration,
// and 1 for the founding one, so of two the higher one is the newer one, on whichever instance it
// was applied.

// Voters takes a configuration of the group that was applied by this instance's log, or the newest
// addresses in one that is known. A newer one than is known replaces it; the same one brings
// addresses; of an older one only is taken that it named this instance.
func (c *Core) Voters(now time.Duration, group, at uint64, voters []Voter) {
	c.now = now
	if c.group != group || c.phase == Newborn || c.take(at, voters) {
		return
	}
	if at != c.at || len(voters) > votersMax || (c.phase == Bound && !c.durable) {
		return
	}
	if !slices.Equal(c.voters, voters) {
		c.revision++
	}
	c.place(voters)
}

// hear takes a configuration of the group that another instance has told. What it says counts if
// this instance believes it; else it is a hint to ask those that this instance believes.
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

// take makes a configuration that is newer than the one that is known the one that is known, and
// reports whether it was. If one that named this instance's replica is followed by one that does
// not, then the replica was removed. A replica that was only prepared is named by none yet, and
// none that does not name it says anything about it.
func (c *Core) take(at uint64, voters []Voter) bool {
	if len(voters) == 0 || len(voters) > votersMax { // so many have never been, and could not be told
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
		c.born = true // nothing is changed before the birth
	case named && !c.named():
		c.remove()
	}
	return true
}

// place notes who the replicas are, and where.
func (c *Core) place(voters []Voter) {
	c.voters, c.stale = slices.Clone(voters), true
	for _, v := range c.voters {
		if c.durable && v.Instance != c.instance {
			c.alive(v.Instance, v.Life, v.Addr, false)
		}
	}
}

// newest returns the newest configuration that is known, with what is known of its addresses.
func (c *Core) newest() []Voter {
	if len(c.voters) > 0 || c.charter == nil {
		return c.voters
	}
	return c.charter.Voters
}

// named reports whether the newest configuration names this instance's replica.
func (c *Core) named() bool { return holds(c.newest(), c.raft) }

// holds reports whether a configuration names a replica.
func holds(voters []Voter, raft uint64) bool {
	return raft != 0 && slices.ContainsFunc(voters, func(v Voter) bool { return v.Raft == raft })
}

// At returns the number of the newest configuration of the group that is known here: 1 for the
// founding one, 0 without a group.
func (c *Core) At() uint64 { return c.at }

// Adopt takes that the group's settings have changed (rule 15). From then on they are what others
// are told, what a directory keeps, and what an instance that is started again is compared with.
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
