package raftlog

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"github.com/mortise-lock/mortise/internal/clock"
)

// hang detects a leader whose store or Applier makes no progress. Raft alone would keep such a
// leader forever. hang counts ticks instead of elapsed time, because a stall of the whole process
// adds only a few ticks.
type hang struct {
	saveTicks int // ticks since the present Save was handed out
	lagIndex  uint64
	lagTicks  int // ticks for which the committed entry at lagIndex has not been applied

	// late is how late the owner's ticks came, although it was idle, since a Save or an entry has
	// waited
	late time.Duration

	handover      bool // a transfer of the leadership has been tried
	handoverTicks int
	handoverIndex uint64 // the last entry when the handover began
}

// handoverLimit is the number of election timeouts for which a leader tries to transfer the
// leadership before it retires. A disk that is only slow has continued by then.
const handoverLimit = 5

// watch runs at each tick. A leader without progress for an election timeout transfers the
// leadership to another voter. If it is still the leader after handoverLimit more election
// timeouts, it retires, but only if the others are a majority whose disks work. Otherwise it waits,
// like the only voter of a group, because a slow disk must not end the group.
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
	slow := c.snapshots.prepareHung(c.cfg.Tick)
	if h.saveTicks == 0 && h.lagTicks == 0 && !slow {
		h.late = 0
	}
	hung := slow || c.role.Leading && max(h.saveTicks, h.lagTicks) >= c.cfg.ElectionTicks
	if !hung || len(c.members.voters) < 2 {
		h.handover = false
		return
	}
	if !c.role.Leading {
		c.outputs.fail(fmt.Errorf("%w: the snapshot at %d was not durable after %d ticks", ErrHung,
			c.snapshots.taking.index, c.snapshots.taking.ticks))
		return
	}
	if !h.handover {
		h.handover, h.handoverTicks, h.handoverIndex = true, 0, c.last
		c.cfg.Logger.Warn(c.hangs()+"; handing over the lead", "term", c.role.Term, "commit", c.commit, "applied",
			c.applied)
	}
	if c.transferee == 0 {
		// Ignore the error: handoverTicks counts even if no voter can become the leader now.
		_ = c.Transfer(0)
	}
	if h.handoverTicks++; h.handoverTicks >= handoverLimit*c.cfg.ElectionTicks && c.dispensable() {
		c.outputs.fail(fmt.Errorf("%w: leading in term %d with commit %d and applied %d", ErrHung, c.role.Term, c.commit,
			c.applied))
	}
}

// Late notes, before the Tick, that the owner was idle and woke for a tick later than it was due.
// The machine then gave the process no processor, so a call that has not returned does not show
// that the disk is slow.
func (c *Core) Late(by time.Duration) {
	if by >= c.cfg.Tick {
		c.hang.late += by
	}
}

// hangs returns what makes no progress.
func (c *Core) hangs() string {
	if most := c.cfg.Tick * time.Duration(c.cfg.ElectionTicks) / 2; c.hang.late >= most {
		return clock.NoProcessor(c.hang.late)
	}
	return "the store or the state machine hangs"
}

// dispensable reports whether the others are a majority without this replica. A voter counts if it
// is active and has confirmed the entries that the leader had when the handover began, because only
// that shows that its disk works: a voter with a hung disk still answers heartbeats.
func (c *Core) dispensable() bool {
	able := make(map[uint64]bool)
	c.node.WithProgress(func(id uint64, _ raft.ProgressType, pr tracker.Progress) {
		_, active := c.silent(id)
		able[id] = active && id != c.id && pr.Match >= c.hang.handoverIndex
	})
	for _, voters := range [...][]uint64{c.members.config.Voters, c.members.config.Outgoing} {
		others := 0
		for _, id := range voters {
			if able[id] {
				others++
			}
		}
		if len(voters) > 0 && 2*others <= len(voters) {
			return false
		}
	}
	return true
}
