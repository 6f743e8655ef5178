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
