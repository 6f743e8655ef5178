package raftlog

import "fmt"

// hang watches for a leader whose disk or apply stands still. Raft would let it lead for ever, committing by its followers and
// answering nobody. It counts ticks, of which a stall of the whole process gives only a few.
type hang struct {
	saveTicks int // since the present Save was handed out
	lagIndex  uint64
	lagTicks  int // since lagIndex was committed and not applied

	handover      bool // the lead has been offered to another
	handoverTicks int
}

// watch runs at each tick. A leader that has made no progress for an election timeout hands over its lead; if it still leads
// after another one, it retires. A lone voter only waits: nobody could lead in its place, and retiring would turn a slow disk
// into the end of the group.
func (c *Core) watch() {
	h := &c.hang
	if c.appends.saving != nil {
		h.saveTicks++
	} else {
		h.saveTicks = 0
	}
	if c.applied < h.lagIndex {
		h.lagTicks++
	} else {
		h.lagIndex, h.lagTicks = c.commit, 0
	}
	if bug("hung-leader-stays") || !c.role.Leading || max(h.saveTicks, h.lagTicks) < c.cfg.ElectionTicks || len(c.voters) < 2 {
		h.handover = false
		return
	}
	if !h.handover {
		h.handover, h.handoverTicks = true, 0
		c.cfg.Logger.Warn("the store or the state machine hangs; handing over the lead",
			"term", c.role.Term, "commit", c.commit, "applied", c.applied)
	}
	if c.transferee == 0 {
		// If there is nobody to take it now, the time runs all the same.
		_ = c.Transfer(0)
	}
	if h.handoverTicks++; h.handoverTicks >= c.cfg.ElectionTicks {
		c.fail(fmt.Errorf("%w: leading in term %d with commit %d and applied %d", ErrHung, c.role.Term, c.commit, c.applied))
	}
}
