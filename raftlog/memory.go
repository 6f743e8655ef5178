package raftlog

import (
	"context"

	"go.etcd.io/raft/v3/raftpb"
)

// MemoryStore is a Store in memory, and mortise's default. A lock ends with its holder's session,
// so no data is needed when every instance has ended. A replica whose process has ended must not
// start again under the same raft ID. The data remains after Close, so that a test can call Start
// with the same store again.
type MemoryStore struct {
	state State
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// Volatile returns true.
func (s *MemoryStore) Volatile() bool { return true }

// Prepare does nothing, because Save stores the snapshot.
func (s *MemoryStore) Prepare(context.Context, *raftpb.Snapshot) error { return nil }

// Close does nothing and returns nil.
func (s *MemoryStore) Close() error { return nil }

// Load returns everything that was saved. The caller may change the slice of entries.
func (s *MemoryStore) Load() (State, error) {
	st := s.state
	st.Entries = append([]*raftpb.Entry(nil), st.Entries...)
	return st, nil
}

// Save keeps the batch in memory. It returns an error only if the batch would leave a gap in the
// log.
func (s *MemoryStore) Save(b Batch) error {
	st := s.state
	if b.Identity != nil {
		st.Identity = *b.Identity
	}
	if b.HardState != nil {
		st.HardState = b.HardState
	}
	if b.Snapshot != nil {
		st.Entries = entriesAfter(st.Entries, b.Snapshot.GetMetadata())
		st.Snapshot = b.Snapshot
	}
	entries, err := splice(st.Entries, st.Snapshot.GetMetadata().GetIndex(), b.Entries)
	if err != nil {
		return err
	}
	st.Entries = entries
	s.state = st
	return nil
}
