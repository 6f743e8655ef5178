package raftlog

import (
	"context"

	"go.etcd.io/raft/v3/raftpb"
)

// Identity names the log that a store holds, by the ID of the group and the raft ID of the replica.
// Both are random and never zero. An Identity must be used only once, with one store.
type Identity struct {
	Group uint64
	ID    uint64
}

// State is the contents of a Store. Its protobuf messages are shared and must not be changed.
type State struct {
	Identity  Identity          // zero if the store is empty, and then all other fields are zero
	HardState *raftpb.HardState // nil if never saved
	Snapshot  *raftpb.Snapshot  // nil only if no leader has sent a snapshot since Join
	Entries   []*raftpb.Entry   // the entries after the snapshot, without gaps
}

// Empty reports whether nothing was ever saved.
func (s State) Empty() bool { return s.Identity == Identity{} }

// Batch is the unit of a Save. After a crash a store holds either the whole batch or nothing of it.
// The fields take effect in the order in which they are declared. The protobuf messages are shared
// with raft and must not be changed, but a Store may keep them.
type Batch struct {
	// Identity is set in the first batch of a store and in no other.
	Identity *Identity

	// HardState replaces the stored hard state. Nil keeps the stored one.
	HardState *raftpb.HardState

	// Snapshot replaces the stored snapshot. Nil keeps the stored one. Entries up to the snapshot's
	// index are no longer needed. If the log holds the snapshot's last entry, with the same index
	// and term, the store keeps the entries after it. Otherwise the snapshot came from another
	// replica, and the store deletes all entries.
	Snapshot *raftpb.Snapshot

	// Prepared reports whether the last Prepare already made Snapshot durable. If so, Save only has
	// to record that this snapshot is in effect.
	Prepared bool

	// Entries are consecutive. They replace all stored entries from their first index on. Entries
	// up to the index of the snapshot need not be kept.
	Entries []*raftpb.Entry
}

// Store keeps a replica's log, across restarts of the process unless it is Volatile. The Log calls
// it from one goroutine at a time, except that Prepare may run concurrently with Save. After an
// error the Log calls only Close.
type Store interface {
	// Load returns everything that was saved. It is called before the first Save of a process. The
	// caller may change the slice of entries.
	Load() (State, error)

	// Save makes the batch durable as one unit, and returns when the batch is durable. After an
	// error the replica retires and acknowledges nothing of the batch. If Volatile is false, Save
	// may block, and it is called on a separate goroutine.
	Save(Batch) error

	// Prepare makes a snapshot durable, and returns when it is durable. The snapshot takes effect
	// only when a Save names it. Until then a later Prepare replaces it, and after a crash the
	// previous snapshot is still in effect. There is one Prepare at a time. After an error the
	// replica retires, unless ctx has ended. When ctx ends, the snapshot is no longer needed, and
	// Prepare must return soon. If Volatile is true, Prepare must not block.
	Prepare(ctx context.Context, s *raftpb.Snapshot) error

	// Volatile reports whether Save never blocks. If so, Save is called on the owner goroutine. The
	// result must never change.
	Volatile() bool

	// Close releases the resources of the store. It is called once, after the last Save and
	// Prepare.
	Close() error
}
