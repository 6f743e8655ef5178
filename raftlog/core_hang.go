package raftlog

import "fmt"

// hang watches for a leader whose disk or apply stands still. Raft would let it lead for ever,
// committing by its followers and answering nobody. It counts ticks, of which a stall of the whole
// process gives only a few.
type hang struct {
	saveTicks int // since the present Save was handed out
	lagIndex  uint64
	lagTicks  int // since lagIndex was committed and not applied

	handover      bool // the lead has been offered to another
	handoverTicks int
}

// watch runs at each tick. A leader that has made no progress for an election timeout hands over
// its lead; if it still leads after another one, it retires. A lone voter only waits: nobody could
// lead in its place, and retiring would turn a slow disk into the end of the group. A snapshot that
// is being prepared does not count as a Save that stands still. If it stands still itself, a leader
// hands over likewise, and whoever does not lead retires.
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
	slow := c.prepareHung()
	hung := slow || c.role.Leading && max(h.saveTicks, h.lagTicks) >= c.cfg.ElectionTicks
	if !hung || len(c.voters) < 2 {
		h.handover = false
		return
	}
	if !c.role.Leading {
		c.fail(fmt.Errorf("%w: the snapshot at %d has been on its way to the disk for %d ticks", ErrHung,
			c.taking.index, c.taking.ticks))
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
		c.fail(fmt.Errorf("%w: leading in term %d with commit %d and applied %d", ErrHung, c.role.Term, c.commit,
			c.applied))
	}
}
