package raftlog

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// entriesAfter returns the entries after the snapshot's last entry, or nil if the log does not hold
// that last entry. The log must have no gaps.
func entriesAfter(log []*raftpb.Entry, meta *raftpb.SnapshotMetadata) []*raftpb.Entry {
	if len(log) == 0 || meta.GetIndex() < log[0].GetIndex() {
		return nil
	}
	at := meta.GetIndex() - log[0].GetIndex()
	if at >= uint64(len(log)) || log[at].GetTerm() != meta.GetTerm() {
		return nil
	}
	// Return a copy, so that the memory of the earlier entries can be freed.
	return append([]*raftpb.Entry(nil), log[at+1:]...)
}

// splice appends entries to a log whose first entry has index base+1. The new entries replace all
// entries of the log from their first index on. splice may reuse the memory of log.
func splice(log []*raftpb.Entry, base uint64, entries []*raftpb.Entry) ([]*raftpb.Entry, error) {
	for len(entries) > 0 && entries[0].GetIndex() <= base {
		entries = entries[1:]
	}
	if len(entries) == 0 {
		return log, nil
	}
	keep := entries[0].GetIndex() - base - 1
	if keep > uint64(len(log)) {
		return nil, fmt.Errorf("raftlog: entry %d does not follow a log that ends at %d", entries[0].GetIndex(),
			base+uint64(len(log)))
	}
	clear(log[keep:])
	return append(log[:keep], entries...), nil
}
