package raftlog

import "maps"

type hearing struct {
	tick  uint64 // tick of the last message; at first the tick at which this entry was added
	spoke bool

	linked uint64 // like the field tick, but duplicates do not count
	uneven uint64 // after a gap in the replica's messages, the tick until which messages to it are duplicated
}

// hearings are the last signs of life of the others.
type hearings struct {
	of     map[uint64]hearing // for every member
	leader uint64             // tick of the leader's last message
}

// hear records a message of a member. It ignores a late message of an earlier term.
func (c *Core) hear(id, term uint64, duplicate bool) {
	if h, ok := c.hearings.of[id]; ok && term >= c.role.Term {
		if !duplicate {
			if h.spoke && c.ticks-h.linked >= c.gapTicks() {
				h.uneven = c.ticks + unsettledTicks
			}
			h.linked = c.ticks
		}
		h.tick, h.spoke = c.ticks, true
		c.hearings.of[id] = h
	}
}

// listen adds new members and deletes removed members.
func (h *hearings) listen(config *Configuration, ticks uint64) {
	maps.DeleteFunc(h.of, func(id uint64, _ hearing) bool { return !config.has(id) })
	for _, m := range config.Members {
		if _, ok := h.of[m.ID]; !ok {
			h.of[m.ID] = hearing{tick: ticks, linked: ticks}
		}
	}
}

// silent returns the ticks since the last message of a replica, and whether the replica is active.
func (c *Core) silent(id uint64) (ticks uint64, active bool) {
	if id == c.id {
		return 0, true
	}
	h, ok := c.hearings.of[id]
	ticks = c.ticks - h.tick
	return ticks, ok && h.spoke && ticks < uint64(c.cfg.ElectionTicks)
}
