package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Turn returns the next Output. All earlier Outputs must have been carried out, except that a Save,
// a Prepare and a Take may still be running.
func (c *Core) Turn() Output {
	c.outputs.recycle()
	for {
		c.deliver()
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
		if !c.outputs.next.Idle() || !ready && len(c.responses.due) == 0 && !c.proposeEmpty() {
			break
		}
	}
	c.take()
	c.rested = c.rested || c.rests()
	c.responses.release()
	return c.outputs.handOut()
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
				c.heldBack.withhold(m)
			case c.early(m):
				after = append(after, m)
			case m.GetType() == raftpb.MsgApp && len(m.GetEntries()) == 0 && !c.careful():
				c.heldBack.hold(m)
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

// deliver passes raft's responses on: those to this replica to raft, the others to the network.
func (c *Core) deliver() {
	due := c.responses.begin()
	votes := false
	for _, m := range due {
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
	c.responses.end(due)
}
