package raftlog

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"

	"github.com/mortise-lock/mortise/internal/clock"
)

// Tick lets time pass. Ticks follow elapsed time, not calls. After a stall at most half an election
// timeout is caught up and the rest is forgotten: a replica that has slept must hear what waits in
// its queues before it concludes that nobody is there.
func (c *Core) Tick(now clock.Time) {
	n := int(now.Sub(c.ticked) / c.cfg.Tick)
	if n <= 0 {
		return
	}
	c.unseen = true
	rested := c.rested
	if c.rested = c.rests(); rested && n > 1 {
		c.ticked = now
		if c.reminder == 0 { // else this may be its timer, and what waits has not waited for a tick
			c.hurry()
		}
		return
	}
	if most := max(1, c.cfg.ElectionTicks/2); n > most {
		n, c.ticked = most, now
	} else {
		c.ticked = c.ticked.Add(c.cfg.Tick * time.Duration(n))
	}
	c.release()
	c.hurry()
	for range n {
		c.ticks++
		c.duplicated = 0
		c.node.Tick()
		c.forget()
		c.observe()
		c.askAgain()
		c.watch()
	}
}

// hurry says that whatever waits to be proposed has waited long enough, be it for company or
// because it stands back.
func (c *Core) hurry() { c.group.waited = c.group.queue.size() > 0 }

// Reminds reports whether the owner is to call Remind when patience is over: for what stands back
// as of the last Turn, if no reminder is under way.
func (c *Core) Reminds() bool {
	if c.reminder != 0 {
		return false
	}
	c.reminder = c.group.back
	return c.reminder != 0
}

// Remind ends the patience of what stood back when Reminds said so. What stands back by now for
// another reason has a patience of its own.
func (c *Core) Remind() {
	if c.reminder != 0 && c.reminder == c.group.back {
		c.hurry()
	}
	c.reminder = 0
}

// NextTick returns when Tick has something to do again. Zero means not before the next input: the
// replica is at rest, see rests.
func (c *Core) NextTick() clock.Time {
	if c.rested && c.rests() {
		return 0
	}
	return c.ticked.Add(c.cfg.Tick)
}

// Step takes a message of another replica. What no replica of this version sends is ignored, as is
// what raft refuses.
func (c *Core) Step(m *raftpb.Message) {
	if !acceptable(m, c.id) || c.yields(m) {
		return
	}
	// The errors that raft returns here say that a message is of no use any more, which is nothing
	// to act on.
	_ = c.node.Step(m)
	c.hear(m.GetFrom(), m.GetTerm())
	c.observe()
	c.led(m.GetFrom(), m.GetTerm())
}

// Propose queues a batch, by copying it, if this replica leads in that term and the queue has room.
// It reports whether it did.
func (c *Core) Propose(term uint64, batch []byte) bool {
	if !c.role.Leading || term != c.role.Term || c.group.queue.size()+len(batch) > c.cfg.QueueBytes {
		return false
	}
	c.group.queue.push(batch)
	return true
}

// Confirm asks for a RoundDone event, once a majority has confirmed this replica's lead after this
// call and everything committed by then is applied. Without a lead in that term it is forgotten at
// once.
func (c *Core) Confirm(term, round uint64) {
	if c.role.Leading && term == c.role.Term {
		c.group.asked = append(c.group.asked, round)
	}
}

// Unreachable says that messages to a replica were probably lost.
func (c *Core) Unreachable(id uint64) { c.node.ReportUnreachable(id) }

// SnapshotSent reports what became of a message of Output.Snapshots: m.To, m.Term, and whether the
// receiver has it.
func (c *Core) SnapshotSent(to, term uint64, ok bool) {
	if !c.role.Leading || term != c.role.Term {
		return // raft has forgotten the snapshot with its lead, and may have sent another one since
	}
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.node.ReportSnapshot(to, status)
}

// Transfer begins to hand the lead to another voter, 0: the one that is most caught up among those
// heard of recently. Proposals wait meanwhile. It has succeeded when Role no longer leads, and
// failed when Transferring no longer holds before.
func (c *Core) Transfer(to uint64) error {
	if !c.role.Leading {
		return ErrNotLeading
	}
	if to == 0 {
		to = c.successor()
	}
	if to == 0 {
		return fmt.Errorf("%w: no other voter has been heard of lately", ErrTransfer)
	}
	c.node.TransferLeader(to)
	c.unseen = true
	c.observe()
	if c.transferee != to {
		return fmt.Errorf("%w: %x is not another voter", ErrTransfer, to)
	}
	return nil
}

// Transferring reports whether a Transfer is under way.
func (c *Core) Transferring() bool { return c.transferee != 0 }

// Role returns the present role.
func (c *Core) Role() Role { return c.role }

// Queued returns the bytes that wait to be proposed.
func (c *Core) Queued() int { return c.group.queue.size() }

// successor returns the voter to hand the lead to: heard of within an election timeout, with most
// of the log, the lowest ID among equals. 0: nobody. Raft's own mark of who is active will not do:
// it is taken from everybody once in each election timeout.
func (c *Core) successor() uint64 {
	var best, match uint64
	c.node.WithProgress(func(id uint64, kind raft.ProgressType, pr tracker.Progress) {
		if _, active := c.silent(id); !active || id == c.id || kind == raft.ProgressTypeLearner {
			return
		}
		if best == 0 || pr.Match > match || pr.Match == match && id < best {
			best, match = id, pr.Match
		}
	})
	return best
}
