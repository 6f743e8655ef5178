package raftlog

import (
	"slices"

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

// add queues a storage message. The item has the contents of the message. A new commit index alone
// causes no Save, because such Saves would double the number of syncs. The exception is the commit
// index of a configuration (core_apply.go). A replica that restarts with an old commit index gets
// the new one from the leader.
func (a *appends) add(item appendItem, m *raftpb.Message) {
	if item.snapshot != nil {
		a.remote++
	}
	item.durable = len(item.entries) > 0 || item.snapshot != nil
	if m.Term != nil {
		voted := m.GetTerm() != a.hard.GetTerm() || m.GetVote() != a.hard.GetVote()
		item.durable = item.durable || voted
		a.hard = &raftpb.HardState{Term: m.Term, Vote: m.Vote, Commit: m.Commit}
	}
	a.waiting = append(a.waiting, item)
}

// addOwn queues a prepared snapshot of this replica.
func (a *appends) addOwn(s *raftpb.Snapshot) {
	a.waiting = append(a.waiting, appendItem{snapshot: s, local: true, durable: true})
}

// respond adds responses to the last item. It reports false if there is no item.
func (a *appends) respond(messages []*raftpb.Message) bool {
	last := &a.waiting
	if len(*last) == 0 {
		last = &a.saving
	}
	n := len(*last)
	if n == 0 {
		return false
	}
	it := &(*last)[n-1]
	it.responses = append(it.responses[:len(it.responses):len(it.responses)], messages...)
	return true
}

// next returns the batch of the next Save, or nil if a Save is running or nothing needs a Save. If
// no waiting item needs one, next adds the responses of all waiting items to due.
func (a *appends) next(due []*raftpb.Message) (*Batch, []*raftpb.Message) {
	if a.saving != nil || len(a.waiting) == 0 {
		return nil, due
	}
	items := a.waiting
	batch, durable := merge(items)
	if !durable {
		for _, it := range items {
			due = append(due, it.responses...)
		}
		clear(items)
		a.waiting = items[:0]
		return nil, due
	}
	a.waiting, a.spare = a.spare, nil
	if a.hard != nil && !sameHardState(a.hard, a.saved) {
		batch.HardState, a.saved = a.hard, a.hard
	}
	a.saving, a.batch = items, batch
	return &a.batch, due
}

// stored ends the Save that is running, and returns its items, for reuse.
func (a *appends) stored() []appendItem {
	items := a.saving
	a.saving = nil
	a.commit = max(a.commit, a.batch.HardState.GetCommit())
	for _, it := range items {
		if it.snapshot != nil && !it.local {
			a.remote--
		}
	}
	return items
}

func (a *appends) reuse(items []appendItem) {
	clear(items)
	if cap(items) <= maxRecycle {
		a.spare = items[:0]
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
