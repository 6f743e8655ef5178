package raftlog

import (
	"context"

	"go.etcd.io/raft/v3/raftpb"
)

// Identity names the log that a store holds: the group and the replica of it. Both are random and
// never zero. An Identity is used once, with one store.
type Identity struct {
	Group uint64
	ID    uint64
}

// State is what a Store holds. Its messages are shared and must not be changed.
type State struct {
	Identity  Identity          // zero if the store is empty; all other fields are then zero as well
	HardState *raftpb.HardState // nil if never saved
	Snapshot  *raftpb.Snapshot  // nil only in a joined replica that has not heard from a leader yet
	Entries   []*raftpb.Entry   // those after the snapshot, without gaps
}

// Empty reports whether nothing has ever been saved.
func (s State) Empty() bool { return s.Identity == Identity{} }

// Batch is one durable unit: after a crash a store holds all of it or nothing of it. The fields
// take effect in their order. Its messages are shared with raft and must not be changed; a Store
// may keep them.
type Batch struct {
	// Identity is set in the first batch of a store and in no other.
	Identity *Identity

	// HardState replaces the stored one. Nil keeps it.
	HardState *raftpb.HardState

	// Snapshot replaces the stored one. Nil keeps it. Entries up to its index are no longer needed.
	// If the log has the last entry of the snapshot (same index and term), the entries after that
	// entry stay. Otherwise the snapshot came from another replica, and all entries are deleted.
	Snapshot *raftpb.Snapshot

	// Prepared reports that Snapshot is the one of the last Prepare: its bytes are durable, and Save
	// only has to name it.
	Prepared bool

	// Entries are consecutive. They replace every stored entry at and after the first index, so an
	// append may overwrite an earlier one. Entries up to the index of the snapshot need not be kept.
	Entries []*raftpb.Entry
}

// Store keeps a replica's log, across restarts of the process unless it is Volatile. The Log calls
// it from one goroutine at a time, except that Prepare may run concurrently with Save. After an
// error the Log calls only Close.
type Store interface {
	// Load returns everything that has been saved, and is called before the first Save of a process.
	// The slice is the caller's.
	Load() (State, error)

	// Save makes the batch durable as one unit and returns when it is. An error is final: the replica
	// retires and acknowledges nothing of the batch. If Volatile is false Save may block; it is then
	// called on a goroutine of its own.
	Save(Batch) error

	// Prepare makes a snapshot durable and then returns, so that a large one delays no append. It
	// takes effect only when a Save names it. There is one Prepare at a time. It replaces a snapshot
	// that was prepared and not named. After a crash before the Save the previous snapshot is still in
	// effect, and the prepared one is deleted. An error is final, as that of Save, unless ctx has
	// ended: then the snapshot is no longer needed, and Prepare must return soon. If Volatile is true
	// Prepare must not block.
	Prepare(ctx context.Context, s *raftpb.Snapshot) error

	// Volatile reports that Save never blocks, so that it is called within the owner's turn. The
	// answer must never change.
	Volatile() bool

	// Close releases what the store holds. It is called once, after the last Save and Prepare.
	Close() error
}
