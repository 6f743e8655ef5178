package raftlog

import (
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// behind returns what a snapshot leaves of a log that it is saved to: the entries after it if the
// log holds its last one, otherwise nothing. A log has no gaps.
func behind(log []*raftpb.Entry, meta *raftpb.SnapshotMetadata) []*raftpb.Entry {
	if len(log) == 0 || meta.GetIndex() < log[0].GetIndex() {
		return nil
	}
	at := meta.GetIndex() - log[0].GetIndex()
	if at >= uint64(len(log)) || log[at].GetTerm() != meta.GetTerm() {
		return nil
	}
	// A slice of its own, so that the entries before can be collected.
	return append([]*raftpb.Entry(nil), log[at+1:]...)
}

// splice returns the log that starts behind index base after an append: entries replace whatever
// stands at and after their first index. It may reuse the log's memory.
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
