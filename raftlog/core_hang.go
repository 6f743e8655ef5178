package raftlog

import "fmt"

// hang detects a leader whose store or Applier makes no progress. Raft alone would keep such a
// leader forever. hang counts ticks instead of elapsed time, because a stall of the whole process
// adds only a few ticks.
type hang struct {
	saveTicks int // ticks since the present Save was handed out
	lagIndex  uint64
	lagTicks  int // ticks for which the committed entry at lagIndex has not been applied

	handover      bool // a transfer of the leadership has been tried
	handoverTicks int
}

// watch runs at each tick. A leader without progress for an election timeout transfers the
// leadership to another voter. If it is still the leader after another election timeout, it
// retires, but only if the other active voters are a majority. Otherwise it waits, like the only
// voter of a group, because a slow disk must not end the group.
//
// A Prepare has a longer limit than a Save. If a Prepare exceeds its limit, a leader also transfers
// the leadership, and any other replica retires.
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
		c.fail(fmt.Errorf("%w: the snapshot at %d was not durable after %d ticks", ErrHung,
			c.taking.index, c.taking.ticks))
		return
	}
	if !h.handover {
		h.handover, h.handoverTicks = true, 0
		c.cfg.Logger.Warn("the store or the state machine hangs; handing over the lead",
			"term", c.role.Term, "commit", c.commit, "applied", c.applied)
	}
	if c.transferee == 0 {
		// Ignore the error: handoverTicks counts even if no voter can become the leader now.
		_ = c.Transfer(0)
	}
	if h.handoverTicks++; h.handoverTicks >= c.cfg.ElectionTicks && c.dispensable() {
		c.fail(fmt.Errorf("%w: leading in term %d with commit %d and applied %d", ErrHung, c.role.Term, c.commit,
			c.applied))
	}
}

// dispensable reports whether the other active voters are a majority without this replica.
func (c *Core) dispensable() bool {
	for _, voters := range [...][]uint64{c.config.Voters, c.config.Outgoing} {
		active := 0
		for _, id := range voters {
			if _, ok := c.silent(id); ok && id != c.id {
				active++
			}
		}
		if len(voters) > 0 && 2*active <= len(voters) {
			return false
		}
	}
	return true
}
