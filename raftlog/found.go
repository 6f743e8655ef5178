package raftlog

import (
	"fmt"
	"slices"

	"go.etcd.io/raft/v3/raftpb"
)

// Found writes the beginning of a new group's log into an empty store, for the replica id. It must
// be called for each founding voter, with the same group, voters and state. The log starts with a
// snapshot of state at index 1 of term 1.
//
// Found must be called only once for an ID, with one store. A replica that is founded again after
// it has lost its data could vote twice in one term. Two leaders could then commit different
// entries.
func Found(store Store, group, id uint64, voters []Member, state []byte) error {
	var ids []uint64
	for _, v := range voters {
		if !validID(v.ID) || slices.Contains(ids, v.ID) || len(v.Context) > maxContext || len(ids) == maxMembers {
			return fmt.Errorf("raftlog: voter %x of %d, with %d bytes of context, is invalid or listed twice",
				v.ID, len(voters), len(v.Context))
		}
		ids = append(ids, v.ID)
	}
	if !slices.Contains(ids, id) {
		return fmt.Errorf("raftlog: replica %x is not among the voters %x", id, ids)
	}
	one := uint64(1)
	conf := &raftpb.ConfState{Voters: union(ids, nil)}
	return begin(store, Batch{
		Identity:  &Identity{Group: group, ID: id},
		HardState: &raftpb.HardState{Term: &one, Vote: new(uint64), Commit: &one},
		Snapshot: &raftpb.Snapshot{Data: enclose(one, newConfiguration(one, conf, voters).Members, state),
			Metadata: &raftpb.SnapshotMetadata{
				Index: &one, Term: &one, ConfState: conf}},
	})
}

// Join writes only the group and the ID into an empty store, for a replica that the group will add.
// The leader sends everything else. Join must be called only once for an ID.
func Join(store Store, group, id uint64) error {
	return begin(store, Batch{Identity: &Identity{Group: group, ID: id}})
}

func begin(store Store, b Batch) error {
	if b.Identity.Group == 0 || !validID(b.Identity.ID) {
		return fmt.Errorf("raftlog: group %x or replica %x is not a valid ID", b.Identity.Group, b.Identity.ID)
	}
	st, err := store.Load()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if !st.Empty() {
		return fmt.Errorf("%w: it is replica %x of group %x", ErrNotEmpty, st.Identity.ID, st.Identity.Group)
	}
	if err := store.Save(b); err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}
