package raftlog

import (
	"fmt"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/internal/clock"
)

// Tick advances the time of the Core to now. The number of ticks depends on the elapsed time, not
// on the number of calls. One call counts at most half an election timeout. So a replica that was
// suspended handles the waiting messages before it treats other replicas as silent.
func (c *Core) Tick(now clock.Time) {
	n := int(now.Sub(c.ticked) / c.cfg.Tick)
	if n <= 0 {
		return
	}
	c.unseen = true
	rested := c.rested
	if c.rested = c.rests(); rested && n > 1 {
		c.ticked = now
		if c.deferrals.timed == 0 { // during a deferral, its timer may have caused this call
			c.hurry()
		}
		return
	}
	c.detector.tick(uint64(n))
	if most := max(1, c.cfg.ElectionTicks/2); n > most {
		n, c.ticked = most, now
	} else {
		c.ticked = c.ticked.Add(c.cfg.Tick * time.Duration(n))
	}
	c.release()
	c.hurry()
	for range n {
		c.ticks++
		c.duplicates.count = 0
		c.node.Tick()
		c.forget()
		c.observe()
		c.askAgain()
		c.watch()
	}
	c.suspect()
}

func (c *Core) hurry() { c.group.waited = c.group.queue.size() > 0 }

// DeferralBegins reports whether the owner must call EndDeferral after MaxDeferral. It reports true
// if the last Turn has deferred batches and no call of EndDeferral is due yet.
func (c *Core) DeferralBegins() bool { return c.deferrals.begins(c.group.back) }

// EndDeferral ends the deferral for which DeferralBegins reported true. It does not end a later
// deferral.
func (c *Core) EndDeferral() {
	if c.deferrals.end(c.group.back) {
		c.hurry()
	}
}

// NextTick returns the time at which Tick must be called next. Zero means that no Tick is needed
// before the next input (see rests).
func (c *Core) NextTick() clock.Time {
	if c.rested && c.rests() {
		return 0
	}
	return c.ticked.Add(c.cfg.Tick)
}

// Step handles a message of another replica. It ignores malformed messages (see acceptable) and
// messages that raft refuses.
func (c *Core) Step(m *raftpb.Message) { c.step(m, false) }

// StepDuplicate is Step for a message from the second connection, see Output.Duplicates.
func (c *Core) StepDuplicate(m *raftpb.Message) { c.step(m, true) }

func (c *Core) step(m *raftpb.Message, duplicate bool) {
	if !acceptable(m, c.id) || c.yields(m) || c.wentBack(m) {
		return
	}
	c.asking.note(m, c.role.Leader, c.ticks)
	c.compare(m) // before raft, which takes any sender of a heartbeat for the leader
	// An error of raft only means that the message is obsolete.
	_ = c.node.Step(m)
	c.hear(m.GetFrom(), m.GetTerm(), duplicate)
	c.observe()
	c.led(m.GetFrom(), m.GetTerm())
	c.detector.heard(m.GetFrom())
}

// wentBack reports whether a heartbeat shows that this replica has stored entries that its log
// lacks, and then retires the replica. The commit index of a heartbeat never exceeds what the
// receiver has acknowledged to this leader, which it did only after a sync.
func (c *Core) wentBack(m *raftpb.Message) bool {
	if m.GetType() != raftpb.MsgHeartbeat || m.GetTerm() < c.role.Term || m.GetCommit() <= c.last {
		return false
	}
	c.outputs.fail(fmt.Errorf("%w: the leader knows that entry %d was stored, and the log ends at entry %d", ErrWentBack,
		m.GetCommit(), c.last))
	return true
}

// Propose copies a batch to the queue if this replica leads in that term and the queue has room. It
// reports whether the batch is in the queue.
func (c *Core) Propose(term uint64, batch []byte) bool {
	if !c.role.Leading || term != c.role.Term || c.group.queue.size()+len(batch) > c.cfg.QueueBytes {
		return false
	}
	c.group.queue.push(batch)
	if c.cfg.Queued != nil {
		c.cfg.Queued(batch)
	}
	return true
}

// Confirm requests a RoundDone event, see Applier.Confirmed. It is ignored if this replica does not
// lead in that term.
func (c *Core) Confirm(term, round uint64) {
	if c.role.Leading && term == c.role.Term {
		c.group.asked = append(c.group.asked, round)
	}
}

// Unreachable reports that messages to a replica were probably lost.
func (c *Core) Unreachable(id uint64) { c.node.ReportUnreachable(id) }

// SnapshotSent reports the result of a message of Output.Snapshots with this To and Term.
func (c *Core) SnapshotSent(to, term uint64, ok bool) {
	if !c.role.Leading || term != c.role.Term {
		return // raft has forgotten the snapshot, and may have sent another one since
	}
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.node.ReportSnapshot(to, status)
}

// Queued returns the number of bytes that wait to be proposed.
func (c *Core) Queued() int { return c.group.queue.size() }
