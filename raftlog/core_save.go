package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

func (c *Core) queueAppend(m *raftpb.Message) {
	item := appendItem{entries: m.GetEntries(), responses: m.GetResponses()}
	if !raft.IsEmptySnap(m.GetSnapshot()) {
		item.snapshot = m.GetSnapshot()
		c.last = item.snapshot.GetMetadata().GetIndex()
		c.overtake()
	}
	if n := len(item.entries); n > 0 {
		c.last = item.entries[n-1].GetIndex()
	}
	if m.Term != nil {
		c.commit = m.GetCommit()
	}
	c.appends.add(item, m)
}

func (c *Core) sendStored(messages []*raftpb.Message) {
	if c.appends.respond(messages) {
		return
	}
	for _, m := range messages {
		c.send(m)
	}
}

// save hands out the next Save, unless a Save is running.
func (c *Core) save() {
	var batch *Batch
	if batch, c.responses.due = c.appends.next(c.responses.due); batch != nil {
		c.hang.saveTicks = 0
		c.outputs.next.Save = batch
	}
}

// Stored reports that the last Save is durable. It adds the entries to the view before it
// delivers any response, because raft drops its own copy when it gets the response. If the Save
// had a snapshot from another replica, the next Output has a Restored event.
func (c *Core) Stored() {
	items := c.appends.stored()
	for _, it := range items {
		if it.local {
			c.snapshots.taking = taking{}
		}
		if it.snapshot != nil && !it.local {
			if err := c.installed(it.snapshot); err != nil {
				c.outputs.fail(err) // unreachable: acceptable refuses such a snapshot
				return
			}
		}
		must(c.view.Append(it.entries))
		if n := len(it.entries); n > 0 {
			before := c.durable
			c.durable = it.entries[n-1].GetIndex()
			if mark := c.group.changing.mark; before <= mark && mark < c.durable {
				c.unseen = true // Settled has changed, and a leader that is alone may rest from now on
			}
		}
	}
	for _, it := range items {
		c.responses.add(it.responses)
	}
	c.appends.reuse(items)
}
