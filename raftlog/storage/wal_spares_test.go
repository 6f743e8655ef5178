package storage

import (
	"testing"

	"github.com/mortise-lock/mortise/raftlog"
)

type largeLog struct {
	t     *testing.T
	fs    *crashFS
	w     *wal
	index uint64
}

// cycle appends entries, prepares a snapshot of the given number of bytes and saves it. It returns
// the disk operations of that Save.
func (l *largeLog) cycle(entries, bytes int) (kinds []opKind) {
	l.t.Helper()
	for range entries {
		l.index++
		l.save(raftlog.Batch{Entries: testEntries(l.index, 1, 1, 1000)})
	}
	snap := testSnapshot(l.index, 1, bytes)
	if err := l.w.Prepare(l.t.Context(), snap); err != nil {
		l.t.Fatal(err)
	}
	from := len(l.fs.ops)
	l.save(raftlog.Batch{Snapshot: snap, Prepared: true})
	for _, o := range l.fs.ops[from:] {
		kinds = append(kinds, o.kind)
	}
	return kinds
}

func (l *largeLog) save(b raftlog.Batch) {
	l.t.Helper()
	if err := l.w.Save(b); err != nil {
		l.t.Fatal(err)
	}
}

func (l *largeLog) count(kind opKind) (n int) {
	for _, o := range l.fs.ops {
		if o.kind == kind {
			n++
		}
	}
	return n
}

// No append waits for the removal of a file. When the log has reached its greatest length, no more
// files are created.
func TestALargeLogUsesItsFilesAgain(t *testing.T) {
	l := &largeLog{t: t, fs: newCrashFS(nil), index: 1}
	l.w = foundedCrash(t, l.fs)
	const size = 20 * crashSegment
	made := 0
	for cycle := range 8 {
		for _, kind := range l.cycle(size/1000, size) {
			if kind == opRemove {
				t.Fatalf("cycle %d: the Save that names a snapshot removes a file", cycle)
			}
		}
		if cycle == 1 {
			made = l.count(opAllocate)
		}
	}
	if again := l.count(opAllocate); again != made {
		t.Errorf("the log has %d files after two snapshots and %d after eight", made, again)
	}
	// The state becomes small, and Prepare removes the surplus files.
	for cycle := range 3 {
		for _, kind := range l.cycle(10, 100) {
			if kind == opRemove {
				t.Fatalf("small, cycle %d: the Save that names a snapshot removes a file", cycle)
			}
		}
	}
	if n := len(l.fs.names); n > 7 {
		t.Errorf("%d files for a small log", n)
	}
	st, err := l.w.Load()
	if err != nil || st.Snapshot.GetMetadata().GetIndex() != l.index {
		t.Fatalf("the snapshot is at %d, not %d (%v)", st.Snapshot.GetMetadata().GetIndex(), l.index, err)
	}
	if err := l.w.Close(); err != nil {
		t.Fatal(err)
	}
}
