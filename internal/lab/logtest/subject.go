package logtest

import (
	"bytes"
	"fmt"
	"testing"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mortise-lock/mortise/raftlog"
)

type testCase struct {
	name string
	why  string // what fails without this property
	run  func(s *subject)
}

type subject struct {
	t     *testing.T
	open  func() raftlog.Store
	store raftlog.Store
	why   string
	want  raftlog.State
}

func (s *subject) save(b raftlog.Batch) {
	s.t.Helper()
	if err := s.store.Save(b); err != nil {
		s.t.Fatalf("Save: %v", err)
	}
	s.want = after(s.want, b)
	s.check()
}

func (s *subject) found() {
	s.t.Helper()
	s.save(raftlog.Batch{Identity: &raftlog.Identity{Group: 1 << 63, ID: 5}, HardState: hard(1, 0, 1),
		Snapshot: snapshot(1, 1, "founded")})
}

func (s *subject) check() {
	s.t.Helper()
	s.compare("open")
	if err := s.store.Close(); err != nil {
		s.t.Fatalf("Close: %v", err)
	}
	s.store = s.open()
	s.compare("reopened")
}

func (s *subject) compare(how string) {
	s.t.Helper()
	got, err := s.store.Load()
	if err != nil {
		s.t.Fatalf("Load: %v", err)
	}
	if err := differ(got, s.want); err != nil {
		s.t.Fatalf("the store, %s: %v\nwhy it matters: %s", how, err, s.why)
	}
}

// The function after returns the state of a store that was in the state st and has saved the
// batch b. It is as simple as possible.
func after(st raftlog.State, b raftlog.Batch) raftlog.State {
	if b.Identity != nil {
		st.Identity = *b.Identity
	}
	if b.HardState != nil {
		st.HardState = b.HardState
	}
	if b.Snapshot != nil {
		st.Snapshot = b.Snapshot
		var rest []*raftpb.Entry
		found := false
		for _, e := range st.Entries {
			if found {
				rest = append(rest, e)
			}
			if e.GetIndex() == b.Snapshot.GetMetadata().GetIndex() &&
				e.GetTerm() == b.Snapshot.GetMetadata().GetTerm() {
				found = true
			}
		}
		st.Entries = rest
	}
	for _, e := range b.Entries {
		var rest []*raftpb.Entry
		for _, old := range st.Entries {
			if old.GetIndex() < e.GetIndex() {
				rest = append(rest, old)
			}
		}
		if e.GetIndex() > st.Snapshot.GetMetadata().GetIndex() {
			rest = append(rest, e)
		}
		st.Entries = rest
	}
	return st
}

// differ returns an error that describes how two states differ. It ignores entries that a snapshot
// covers, because a store need not keep them.
func differ(got, want raftlog.State) error {
	if got.Identity != want.Identity {
		return fmt.Errorf("identity %v, want %v", got.Identity, want.Identity)
	}
	if g, w := got.HardState, want.HardState; (g == nil) != (w == nil) || g.GetTerm() != w.GetTerm() ||
		g.GetVote() != w.GetVote() || g.GetCommit() != w.GetCommit() {
		return fmt.Errorf("hard state %v, want %v", g, w)
	}
	if g, w := got.Snapshot, want.Snapshot; !proto.Equal(g.GetMetadata(), w.GetMetadata()) ||
		!bytes.Equal(g.GetData(), w.GetData()) {
		return fmt.Errorf("snapshot %v, want %v", g, w)
	}
	entries := got.Entries
	for len(entries) > 0 && entries[0].GetIndex() <= want.Snapshot.GetMetadata().GetIndex() {
		entries = entries[1:]
	}
	if len(entries) != len(want.Entries) {
		return fmt.Errorf("%d entries behind the snapshot, want %d", len(entries), len(want.Entries))
	}
	for i, e := range entries {
		w := want.Entries[i]
		if e.GetIndex() != w.GetIndex() || e.GetTerm() != w.GetTerm() || e.GetType() != w.GetType() ||
			!bytes.Equal(e.GetData(), w.GetData()) {
			return fmt.Errorf("entry %v, want %v", e, w)
		}
	}
	return nil
}

func hard(term, vote, commit uint64) *raftpb.HardState {
	return &raftpb.HardState{Term: &term, Vote: &vote, Commit: &commit}
}

func snapshot(index, term uint64, data string) *raftpb.Snapshot {
	return &raftpb.Snapshot{Data: []byte(data), Metadata: &raftpb.SnapshotMetadata{Index: &index, Term: &term,
		ConfState: &raftpb.ConfState{Voters: []uint64{5, 6, 1 << 63}, Learners: []uint64{9}, AutoLeave: new(false)}}}
}

func entries(from, term uint64, n int) (out []*raftpb.Entry) {
	for i := range uint64(n) {
		e := &raftpb.Entry{Index: new(from + i), Term: new(term), Data: fmt.Appendf(nil, "%d/%d", from+i, term)}
		switch i % 4 {
		case 1:
			e.Type = raftpb.EntryConfChangeV2.Enum()
		case 2:
			e.Data = nil
		}
		out = append(out, e)
	}
	return out
}
