package raftlog

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
)

// Found writes the beginning of a group's log into an empty store: replica id of the group, with these voters and this initial
// state. All founding voters must write the same group, voters and state. The log starts with a snapshot at index 1 of term 1, so
// that a replica added later is sent a snapshot and needs nothing from before.
//
// An ID is founded once, in one store. A replica that founds again after it has lost its data can vote a second time in a term in
// which it has voted, and two leaders would commit different things.
func Found(store Store, group, id uint64, voters []uint64, state []byte) error {
	voters = slices.Clone(voters)
	slices.Sort(voters)
	if !slices.Contains(voters, id) {
		return fmt.Errorf("raftlog: %x is none of the voters %x", id, voters)
	}
	if len(slices.Compact(slices.Clone(voters))) != len(voters) || voters[0] == 0 || raft.IsLocalMsgTarget(voters[len(voters)-1]) {
		return fmt.Errorf("raftlog: the voters %x are not all different and valid", voters)
	}
	one := uint64(1)
	return begin(store, Batch{
		Identity:  &Identity{Group: group, ID: id},
		HardState: &raftpb.HardState{Term: &one, Vote: new(uint64), Commit: &one},
		Snapshot: &raftpb.Snapshot{Data: state, Metadata: &raftpb.SnapshotMetadata{
			Index: &one, Term: &one, ConfState: &raftpb.ConfState{Voters: voters}}},
	})
}

// Join writes the beginning of a replica that its group will add, into an empty store. It knows nobody, and learns everything
// from the first leader that writes to it. An ID joins once, as it is founded once.
func Join(store Store, group, id uint64) error {
	return begin(store, Batch{Identity: &Identity{Group: group, ID: id}})
}

func begin(store Store, b Batch) error {
	if b.Identity.Group == 0 || b.Identity.ID == 0 || raft.IsLocalMsgTarget(b.Identity.ID) {
		return fmt.Errorf("raftlog: group %x and replica %x must both be proper IDs", b.Identity.Group, b.Identity.ID)
	}
	st, err := store.Load()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if !st.Empty() && !bug("founded-again") {
		return fmt.Errorf("%w: it is replica %x of group %x", ErrNotEmpty, st.Identity.ID, st.Identity.Group)
	}
	if err := store.Save(b); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}
