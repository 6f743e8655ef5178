package raftlog

import (
	"context"

	"go.etcd.io/raft/v3/raftpb"
)

// Identity names the log that a store holds: the group and the replica of it. Both are minted at
// random elsewhere and never zero. An Identity lives once, with one store: a replica that lost its
// data comes back under another ID.
type Identity struct {
	Group uint64
	ID    uint64
}

// State is what a Store holds. The messages in it are shared and must not be changed by anybody.
type State struct {
	Identity  Identity          // zero: the store is empty, and so is all the rest
	HardState *raftpb.HardState // nil: never saved
	Snapshot  *raftpb.Snapshot  // nil: none; only a replica that has joined and has heard of nobody yet has none
	Entries   []*raftpb.Entry   // those after the snapshot, without gaps
}

// Empty reports whether nothing has ever been saved.
func (s State) Empty() bool { return s.Identity == Identity{} }

// Batch is one durable unit: after a crash a store holds all of it or nothing of it. The fields
// take effect in their order. The messages in it are shared with raft and must not be changed by
// anybody; a Store may keep them.
type Batch struct {
	// Identity is set in the first batch of a store and in no other.
	Identity *Identity

	// HardState replaces the stored one; nil: it stays.
	HardState *raftpb.HardState

	// Snapshot replaces the stored one; nil: it stays. Entries up to its index are no longer
	// needed. If the log holds the snapshot's last entry (same index and term) the entries behind
	// it stay; otherwise the snapshot came from another replica, and all entries go.
	Snapshot *raftpb.Snapshot

	// Prepared says that Snapshot is the one for which Prepare has returned last: its bytes are
	// durable, and what is left is to name it.
	Prepared bool

	// Entries are consecutive. The first of them and everything stored behind it are replaced, so
	// that an append may overwrite what an earlier one wrote. Those up to the index of the snapshot
	// need not be kept.
	Entries []*raftpb.Entry
}

// Store keeps a replica's log over the end of its process, or pretends to. The log calls it from
// one goroutine at a time, but for Prepare, which may run beside Save, and never again after it has
// returned an error, except for Close.
type Store interface {
	// Load returns everything that has been saved, and is called before the first Save of a
	// process. The slice is the caller's.
	Load() (State, error)

	// Save makes the batch durable as one unit and returns when it is. An error is final: the voter
	// retires, and nothing of the batch is acknowledged to anybody. Save may take its time if
	// Volatile is false; it is then called on a goroutine of its own.
	Save(Batch) error

	// Prepare makes a snapshot durable, where it means nothing until a Save names it, and returns
	// when it is: so that a large one holds up no append. One at a time; a crash before the Save
	// leaves the snapshot before, and what Prepare has written goes. Whatever was prepared before
	// and not named by then goes, too. An error is final, as that of Save, unless ctx has ended:
	// nobody waits for the snapshot any more, and Prepare returns soon. If Volatile is true it
	// waits for nothing.
	Prepare(ctx context.Context, s *raftpb.Snapshot) error

	// Volatile reports that Save never waits for anything, so that it is called in the middle of
	// the owner's turn. Constant.
	Volatile() bool

	// Close releases what the store holds. It is called once, after the last Save and the last
	// Prepare have returned.
	Close() error
}
