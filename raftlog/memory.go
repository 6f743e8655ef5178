package raftlog

import (
	"context"

	"go.etcd.io/raft/v3/raftpb"
)

// MemoryStore is a Store in memory. It is the default of mortise: a lock ends with its holder's
// session, so no lock is held when every instance has ended. A replica whose process ends must not
// come back under its raft ID. Close keeps the stored log, so that a test can start a Log on the
// store again.
type MemoryStore struct {
	state State
}

// NewMemoryStore returns an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{} }

// Volatile reports true: Save does not block.
func (s *MemoryStore) Volatile() bool { return true }

// Prepare does nothing: Save stores the snapshot.
func (s *MemoryStore) Prepare(context.Context, *raftpb.Snapshot) error { return nil }

// Close does nothing.
func (s *MemoryStore) Close() error { return nil }

// Load returns what has been saved. The slice of entries is the caller's.
func (s *MemoryStore) Load() (State, error) {
	st := s.state
	st.Entries = append([]*raftpb.Entry(nil), st.Entries...)
	return st, nil
}

// Save keeps the batch. It fails only if the log would have a gap, which is a bug of the caller.
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
