package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// appends is the queue of items for the store. There is one Save at a time, and it stores all items
// that wait.
type appends struct {
	waiting []appendItem
	saving  []appendItem      // items of the Save that was handed out; nil if there is none
	batch   Batch             // the batch to which Output.Save points, until Stored
	spare   []appendItem      // empty; its memory is reused
	hard    *raftpb.HardState // hard state after the last queued item
	saved   *raftpb.HardState // hard state in the last Save that was handed out
	commit  uint64            // commit index of the durable hard state
	remote  int               // number of queued snapshots that came from another replica
}

// appendItem is one storage message of raft, or a snapshot taken here.
type appendItem struct {
	entries   []*raftpb.Entry
	snapshot  *raftpb.Snapshot
	local     bool // the snapshot was taken by this replica and is prepared
	durable   bool // the item needs a Save
	responses []*raftpb.Message
}

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

// careful reports whether entries must be durable on this leader before they are sent. This is so
// from the leader's election, or from a change of the configuration, until the configuration is
// applied and a later entry is durable on the leader.
//
// At other times a leader sends entries while it writes them to its disk. If the leader crashes
// before the write ends, another replica may have a longer log. Normally that replica is elected.
// During a change of the configuration, it may be a replica that loses its vote. The remaining
// voters may still need this vote, but the replica refuses it, because their logs are shorter.
func (c *Core) careful() bool {
	return c.role.Leading && (!c.group.leads || c.pending() || c.durable <= c.group.changing.mark)
}

func (c *Core) early(m *raftpb.Message) bool { return lastIndex(m) > c.durable && c.careful() }

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

// This method queues an item that needs a Save, so that a commit index becomes durable. It does
// nothing if an earlier Save had that commit index, or if a waiting item needs a Save.
func (a *appends) demand(commit uint64) {
	due := func(it appendItem) bool { return it.durable }
	if a.saved.GetCommit() < commit && !slices.ContainsFunc(a.waiting, due) {
		a.waiting = append(a.waiting, appendItem{durable: true})
	}
}

// merge combines storage messages into one batch, and reports whether one of them needs a Save.
func merge(items []appendItem) (b Batch, durable bool) {
	for _, it := range items {
		durable = durable || it.durable
		if it.snapshot != nil {
			b.Snapshot, b.Prepared = it.snapshot, it.local
			if !it.local {
				b.Entries = nil
			}
		}
		if len(it.entries) == 0 {
			continue
		}
		keep := 0
		if first := it.entries[0].GetIndex(); len(b.Entries) > 0 && first > b.Entries[0].GetIndex() {
			keep = int(first - b.Entries[0].GetIndex())
		}
		if keep == 0 {
			b.Entries = it.entries
			continue
		}
		// A later append may overwrite entries of an earlier append. The full slice expression
		// makes append copy, so that raft's own slices are not changed.
		b.Entries = append(b.Entries[:keep:keep], it.entries...)
	}
	return b, durable
}

func sameHardState(a, b *raftpb.HardState) bool {
	return b != nil && a.GetTerm() == b.GetTerm() && a.GetVote() == b.GetVote() && a.GetCommit() == b.GetCommit()
}
