package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// queueAppend queues a storage message. A new commit index alone causes no Save, because such Saves
// would double the number of syncs. The exception is the commit index of a configuration
// (core_apply.go). A replica that restarts with an old commit index gets the new one from the
// leader.
func (c *Core) queueAppend(m *raftpb.Message) {
	a := &c.appends
	item := appendItem{entries: m.GetEntries(), responses: m.GetResponses()}
	if !raft.IsEmptySnap(m.GetSnapshot()) {
		item.snapshot = m.GetSnapshot()
		c.last = item.snapshot.GetMetadata().GetIndex()
		a.remote++
		c.overtake()
	}
	if n := len(item.entries); n > 0 {
		c.last = item.entries[n-1].GetIndex()
	}
	item.durable = len(item.entries) > 0 || item.snapshot != nil
	if m.Term != nil {
		voted := m.GetTerm() != a.hard.GetTerm() || m.GetVote() != a.hard.GetVote()
		item.durable = item.durable || voted
		a.hard = &raftpb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
		c.commit = m.GetCommit()
	}
	a.waiting = append(a.waiting, item)
}

func (c *Core) sendStored(messages []*raftpb.Message) {
	a := &c.appends
	last := &a.waiting
	if len(*last) == 0 {
		last = &a.saving
	}
	if n := len(*last); n > 0 {
		it := &(*last)[n-1]
		it.responses = append(it.responses[:len(it.responses):len(it.responses)], messages...)
		return
	}
	for _, m := range messages {
		c.send(m)
	}
}

// save hands out the next Save, unless a Save is running. If no waiting item needs a Save, the
// responses of all waiting items become due immediately.
func (c *Core) save() {
	a := &c.appends
	if a.saving != nil || len(a.waiting) == 0 {
		return
	}
	items := a.waiting
	batch, durable := merge(items)
	if !durable {
		for _, it := range items {
			c.due = append(c.due, it.responses...)
		}
		clear(items)
		a.waiting = items[:0]
		return
	}
	a.waiting, a.spare = a.spare, nil
	if a.hard != nil && !sameHardState(a.hard, a.saved) {
		batch.HardState, a.saved = a.hard, a.hard
	}
	a.saving = items
	c.hang.saveTicks = 0
	a.batch = batch
	c.out.Save = &a.batch
}

// Stored reports that the last Save is durable. It adds the entries to the view before it
// delivers any response, because raft drops its own copy when it gets the response. If the Save
// had a snapshot from another replica, the next Output has a Restored event.
func (c *Core) Stored() {
	items := c.appends.saving
	c.appends.saving = nil
	c.appends.commit = max(c.appends.commit, c.appends.batch.HardState.GetCommit())
	for _, it := range items {
		if it.local {
			c.taking = taking{}
		}
		if it.snapshot != nil && !it.local {
			c.appends.remote--
			if err := c.installed(it.snapshot); err != nil {
				c.fail(err) // unreachable: acceptable refuses such a snapshot
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
		c.due = append(c.due, it.responses...)
	}
	clear(items)
	if cap(items) <= maxRecycle {
		c.appends.spare = items[:0]
	}
}
