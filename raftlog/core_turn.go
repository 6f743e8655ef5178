package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Turn returns the next Output. All earlier Outputs must have been carried out, except that a Save,
// a Prepare and a Take may still be running.
func (c *Core) Turn() Output {
	c.recycle()
	for {
		due := c.due
		c.due = nil
		c.deliver(due)
		clear(due)
		c.due = append(due[:0], c.due...)
		c.read()
		c.proposeChange()
		c.propose()
		ready := c.node.HasReady()
		if ready {
			c.handle(c.node.Ready())
		}
		c.apply()
		c.answer()
		c.handOver()
		c.save()
		if !c.out.Idle() || !ready && len(c.due) == 0 && !c.proposeEmpty() {
			break
		}
	}
	c.take()
	c.rested = c.rested || c.rests()
	out := c.out
	c.out = Output{Failed: out.Failed, Events: c.done.Events, Messages: c.done.Messages, Duplicates: c.done.Duplicates}
	c.done = out
	c.due = append(c.due, c.held...)
	clear(c.held)
	c.held = c.held[:0]
	return out
}

func (c *Core) recycle() {
	clear(c.done.Events)
	clear(c.done.Messages)
	clear(c.done.Duplicates)
	events, messages := c.done.Events[:0], c.done.Messages[:0]
	if cap(events) > maxRecycle {
		events = nil
	}
	if cap(messages) > maxRecycle {
		messages = nil
	}
	duplicates := c.done.Duplicates[:0] // few, see maxDuplicatesPerTick
	c.done = Output{Events: events, Messages: messages, Duplicates: duplicates}
}

// handle processes one Ready of raft. Because AsyncStorageWrites is set, its messages contain
// everything that must be stored, applied and sent.
func (c *Core) handle(rd raft.Ready) {
	for _, rs := range rd.ReadStates {
		c.group.confirmed(rs)
	}
	var after []*raftpb.Message
	held := false
	for _, m := range rd.Messages {
		switch m.GetTo() {
		case raft.LocalAppendThread:
			c.queueAppend(m)
		case raft.LocalApplyThread:
			c.applies = append(c.applies, m)
		default:
			if kind := m.GetType(); kind == raftpb.MsgPreVote || kind == raftpb.MsgVote {
				c.asks(m)
			}
			switch {
			case c.withholds(m):
				c.withhold(m)
			case c.early(m):
				after = append(after, m)
			case m.GetType() == raftpb.MsgApp && len(m.GetEntries()) == 0 && !c.careful():
				c.hold(m)
				held = true
			default:
				c.send(m)
			}
		}
	}
	if held {
		c.sendProbes()
	}
	c.sendStored(after)
}

func (c *Core) deliver(responses []*raftpb.Message) {
	votes := false
	for _, m := range responses {
		if m.GetTo() != c.id {
			c.send(m)
			continue
		}
		// An error only means that the response is obsolete, for example after this replica was
		// removed.
		_ = c.node.Step(m)
		votes = votes || m.GetType() == raftpb.MsgVoteResp || m.GetType() == raftpb.MsgPreVoteResp
	}
	if votes {
		c.observe() // among the messages of a replica to itself, only votes can change the role
	}
}
