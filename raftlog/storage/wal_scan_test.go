package storage

import (
	"runtime"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

// Reading a log must not copy the earlier entries for each frame.
func TestALongLogIsReadInProportion(t *testing.T) {
	const frames = 20_000 // a copy for each frame would take 1.6 GB
	id := raftlog.Identity{Group: 7, ID: 1}
	s := &scanned{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i := range uint64(frames) {
		it := items{first: i + 1, entries: []*raftpb.Entry{{Index: new(i + 1), Term: new(uint64(1))}}}
		if err := s.add(it, id, 1); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 64<<20 {
		t.Errorf("%d frames with an entry each took %d MB of memory in all, want at most 64", frames, got>>20)
	}
	if len(s.entries) != frames || s.entries[frames-1].GetIndex() != frames {
		t.Errorf("%d entries were read", len(s.entries))
	}
}
