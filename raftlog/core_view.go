package raftlog

import (
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// entryOverheadBytes estimates the memory of an entry without its data.
const entryOverheadBytes = 32

// view is the durable part of the log, as raft reads it. It keeps the snapshot outside of raft's
// MemoryStorage, which would clone the snapshot and return it even if it is too old.
type view struct {
	*raft.MemoryStorage
	snap      *raftpb.Snapshot // nil if there is none
	confIndex uint64           // index of the last applied configuration entry
	wanted    bool             // raft requested a snapshot newer than snap
}

func newView() *view { return &view{MemoryStorage: raft.NewMemoryStorage()} }

// Snapshot returns the last snapshot, for raft to send. It never returns a snapshot older than the
// last applied configuration. Raft ignores a snapshot whose configuration does not contain the
// receiver, so a new learner could not catch up with an older snapshot. If no snapshot is new
// enough, Snapshot returns an error and makes a new snapshot due. Raft calls Snapshot again after
// the next heartbeat response.
func (v *view) Snapshot() (*raftpb.Snapshot, error) {
	if v.snap == nil || v.index() < v.confIndex {
		v.wanted = true
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return v.snap, nil
}

func (v *view) index() uint64 { return v.snap.GetMetadata().GetIndex() }

// install empties the log. The new log begins after the snapshot.
func (v *view) install(s *raftpb.Snapshot) {
	// Leave the data out, because MemoryStorage would copy it.
	must(v.ApplySnapshot(&raftpb.Snapshot{Metadata: s.GetMetadata()}))
	v.snap, v.confIndex, v.wanted = s, s.GetMetadata().GetIndex(), false
}

// take stores a snapshot of the state and configuration at index, and drops the entries up to
// index. For replicas that lag a little, it leaves the newest of these entries in the log. Their
// number is at most keep, and their size is at most about keepBytes.
func (v *view) take(index uint64, conf *raftpb.ConfState, data []byte, keep, keepBytes int) *raftpb.Snapshot {
	term, err := v.Term(index)
	must(err)
	v.snap = &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{
		ConfState: proto.CloneOf(conf), Index: &index, Term: &term}}
	// If a configuration was applied since the snapshot began, raft needs a newer snapshot.
	v.wanted = v.wanted && index < v.confIndex
	first, err := v.FirstIndex()
	must(err)
	if cut := v.cut(first, index, keep, keepBytes); cut >= first {
		must(v.Compact(cut))
	}
	return v.snap
}

// cut returns the index of the last entry to drop, or first-1 for none. It reads the log backwards
// in small pieces, because raft's storage scans the whole range of a read and a large read would
// block the owner.
func (v *view) cut(first, index uint64, keep, keepBytes int) uint64 {
	const atOnce = 256
	for index >= first && keep > 0 && keepBytes > 0 {
		from := max(first, index-min(index, atOnce-1))
		entries, err := v.Entries(from, index+1, ^uint64(0))
		must(err)
		for i := len(entries) - 1; i >= 0 && keep > 0 && keepBytes > 0; i-- {
			keep--
			keepBytes -= len(entries[i].GetData()) + entryOverheadBytes
			index--
		}
	}
	return index
}
