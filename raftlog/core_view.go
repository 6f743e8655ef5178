package raftlog

import (
	"fmt"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// entryOverheadBytes is what an entry costs beside its data, about.
const entryOverheadBytes = 32

// view is the read side of the log: what raft reads after it is durable. It wraps raft's own
// storage in memory, all but the snapshot: raft clones that one, and it hands out whatever it has.
type view struct {
	*raft.MemoryStorage
	snap      *raftpb.Snapshot // nil: none
	confIndex uint64           // last applied configuration entry
	wanted    bool             // raft asked for a snapshot newer than snap
}

func newView() *view { return &view{MemoryStorage: raft.NewMemoryStorage()} }

// Snapshot returns the last snapshot, for raft to send. It is never older than the last applied
// configuration entry: raft ignores a snapshot that does not name its receiver, and a learner that
// gets one from before its addition never catches up. If there is none yet, raft is put off until
// its next heartbeat has come back, and the owner is asked to take one now.
func (v *view) Snapshot() (*raftpb.Snapshot, error) {
	if v.snap == nil || v.index() < v.confIndex {
		v.wanted = true
		return nil, raft.ErrSnapshotTemporarilyUnavailable
	}
	return v.snap, nil
}

// index returns that of the last snapshot, 0 without one.
func (v *view) index() uint64 { return v.snap.GetMetadata().GetIndex() }

// install empties the log and starts it anew behind a snapshot.
func (v *view) install(s *raftpb.Snapshot) {
	// Without its data, which would be copied and never read there.
	must(v.ApplySnapshot(&raftpb.Snapshot{Metadata: s.GetMetadata()}))
	v.snap, v.confIndex, v.wanted = s, s.GetMetadata().GetIndex(), false
}

// take files a snapshot of the state at an index of the log, with the configuration that held
// there, and forgets entries behind it: some stay, so that a replica that lags a little can be
// served from the log, as many as keep and keepBytes allow.
func (v *view) take(index uint64, conf *raftpb.ConfState, data []byte, keep, keepBytes int) *raftpb.Snapshot {
	term, err := v.Term(index)
	must(err)
	v.snap = &raftpb.Snapshot{Data: data, Metadata: &raftpb.SnapshotMetadata{
		ConfState: proto.CloneOf(conf), Index: &index, Term: &term}}
	// a configuration that was applied since it was begun asks for another one
	v.wanted = v.wanted && index < v.confIndex
	first, err := v.FirstIndex()
	must(err)
	if cut := v.cut(first, index, keep, keepBytes); cut >= first {
		must(v.Compact(cut))
	}
	return v.snap
}

// cut returns the last entry that is forgotten, or one before first. It asks for no more than it
// looks at: raft's storage goes through all that it is asked for, and behind a large state that is
// so much log that everybody would wait for it.
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

// installed makes a snapshot that is durable here the state of the replica.
func (c *Core) installed(s *raftpb.Snapshot) error {
	config, state, err := open(s)
	if err != nil {
		return fmt.Errorf("%w: the snapshot at %d: %w", ErrCorrupt, s.GetMetadata().GetIndex(), err)
	}
	meta := s.GetMetadata()
	c.view.install(s)
	c.applied, c.since = meta.GetIndex(), 0
	c.out.Events = append(c.out.Events, Event{Kind: Restored, Index: meta.GetIndex(), Term: meta.GetTerm(),
		Data: state})
	c.configured(meta.GetConfState(), config)
	return nil
}
