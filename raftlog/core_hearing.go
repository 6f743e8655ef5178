package raftlog

import "maps"

type hearing struct {
	tick  uint64 // tick of the last message; at first the tick at which this entry was added
	spoke bool

	linked uint64 // like the field tick, but duplicates do not count
	uneven uint64 // after a gap in the replica's messages, the tick until which messages to it are duplicated
}

// hear records a message of a member. It ignores a late message of an earlier term.
func (c *Core) hear(id, term uint64, duplicate bool) {
	if h, ok := c.heard[id]; ok && term >= c.role.Term {
		if !duplicate {
			if h.spoke && c.ticks-h.linked >= c.gapTicks() {
				h.uneven = c.ticks + unsettledTicks
			}
			h.linked = c.ticks
		}
		h.tick, h.spoke = c.ticks, true
		c.heard[id] = h
	}
}

// listen adds new members to c.heard and deletes removed members. If anew is set, it first deletes
// all entries.
func (c *Core) listen(anew bool) {
	if anew {
		clear(c.heard)
	}
	maps.DeleteFunc(c.heard, func(id uint64, _ hearing) bool { return !c.config.has(id) })
	for _, m := range c.config.Members {
		if _, ok := c.heard[m.ID]; !ok {
			c.heard[m.ID] = hearing{tick: c.ticks, linked: c.ticks}
		}
	}
}

// silent returns the ticks since the last message of a replica, and whether the replica is active.
func (c *Core) silent(id uint64) (ticks uint64, active bool) {
	if id == c.id {
		return 0, true
	}
	h, ok := c.heard[id]
	ticks = c.ticks - h.tick
	return ticks, ok && h.spoke && ticks < uint64(c.cfg.ElectionTicks)
}
