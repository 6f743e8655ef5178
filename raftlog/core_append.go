package raftlog

import (
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// appends is the queue of the store. One Save at a time takes all that waits.
type appends struct {
	waiting []appendItem
	saving  []appendItem      // the items handed out as Output.Save; nil if there are none
	batch   Batch             // Output.Save points to it, until Stored
	spare   []appendItem      // empty; its memory is reused
	hard    *raftpb.HardState // as of the last item
	saved   *raftpb.HardState // as of the last Save handed out
	commit  uint64            // commit index of the last hard state that is durable
	remote  int               // items in waiting and saving that install another replica's snapshot
}

// appendItem is one storage message of raft, or a snapshot taken here.
type appendItem struct {
	entries   []*raftpb.Entry
	snapshot  *raftpb.Snapshot
	local     bool // snapshot was taken here, and is prepared
	durable   bool // it needs a Save
	responses []*raftpb.Message
}

// queueAppend queues a storage message. A new commit index alone causes no Save, which would double
// the syncs, except for a configuration (core_apply.go). A replica that restarts without it learns
// it from the leader.
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

// careful reports whether entries must be durable here before they are sent. They must from the
// time at which this replica begins to lead or to change the configuration, until it is durable
// here that the configuration is committed.
//
// At other times a leader sends its entries while it writes them to its disk. If it crashes before
// they are durable, another replica has the longer log and is normally elected. During a change of
// the configuration that replica may have lost its vote. The remaining voters then have shorter
// logs, and it would refuse to vote for them.
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

// save hands out the next Save, unless one is under way. If no waiting item needs a Save, the
// responses are due at once.
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

// Stored reports that the Save handed out last is durable. Its entries become readable before any
// response is delivered, because raft then drops its own copy. Another replica's snapshot becomes
// an event of the next Output, before everything that depends on it.
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
				c.fail(err) // unreachable: Step passes no such snapshot to raft
				return
			}
		}
		must(c.view.Append(it.entries))
		if n := len(it.entries); n > 0 {
			c.durable = it.entries[n-1].GetIndex()
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

// demand makes the next Save due, so that a commit index becomes durable, unless a Save that was
// handed out has it.
func (a *appends) demand(commit uint64) {
	due := func(it appendItem) bool { return it.durable }
	if a.saved.GetCommit() < commit && !slices.ContainsFunc(a.waiting, due) {
		a.waiting = append(a.waiting, appendItem{durable: true})
	}
}

// merge combines storage messages into one batch, and reports whether any of them must be durable.
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
		// A later append may overwrite an earlier one. The full slice expression protects raft's
		// own slices.
		b.Entries = append(b.Entries[:keep:keep], it.entries...)
	}
	return b, durable
}

func sameHardState(a, b *raftpb.HardState) bool {
	return b != nil && a.GetTerm() == b.GetTerm() && a.GetVote() == b.GetVote() && a.GetCommit() == b.GetCommit()
}
