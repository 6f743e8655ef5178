package storage

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/raftlog"
)

// For every n, the n-th operation of a run fails. The failed call and every later call must return
// the error. All promised data must exist after a kill and after a power loss.
func TestErrorAtEveryOperation(t *testing.T) {
	slow.UnderRace(t)
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		for n := 0; ; n += coarse() {
			h := newHistory(uint64(n%7), nil, raftlog.State{})
			h.fs.half = n%2 == 0
			left := n
			h.fs.before = func(o op) error {
				if left--; left == -1 {
					return cause
				}
				return nil
			}
			err := h.run(25)
			if err == nil {
				if n < 100 {
					t.Fatalf("the run has only %d operations", n)
				}
				break
			}
			if !errors.Is(err, raftlog.ErrStorage) || !errors.Is(err, cause) ||
				!strings.Contains(err.Error(), "start the instance again") {
				t.Fatalf("operation %d: %v, want ErrStorage with its cause and what to do", n, err)
			}
			h.fs.before = nil
			if h.w != nil { // nil if opening it failed
				if again := h.w.Save(raftlog.Batch{HardState: testHard(1000, 0, 0)}); again == nil ||
					h.w.failed != nil && again.Error() != err.Error() {
					t.Fatalf("operation %d: after the error Save returns %v", n, again)
				}
			}
			r := rand.New(rand.NewPCG(uint64(n), 1))
			at := len(h.fs.ops)
			for i, image := range []map[string][]byte{h.fs.live(), h.fs.image(at, never), h.fs.image(at, always),
				h.fs.image(at, sometimes(r, 0.5))} {
				if err := h.tryImage(at, image, uint64(n), true); err != nil {
					t.Fatalf("operation %d fails (%v), image %d: %v", n, cause, i, err)
				}
			}
		}
	}
}

// A process that restarts after a failed sync must write the data again. The kernel may return it
// from memory although the disk does not have it.
func TestFailedSyncIsNotTrusted(t *testing.T) {
	h := newHistory(1, nil, raftlog.State{})
	if err := h.run(10); err != nil {
		t.Fatal(err)
	}
	var lost op
	h.fs.before = func(o op) error {
		if o.kind == opWrite {
			lost = o
		}
		if o.kind == opSync {
			return syscall.EIO
		}
		return nil
	}
	last := h.promises[len(h.promises)-1].state
	b := raftlog.Batch{HardState: testHard(last.HardState.GetTerm()+5, 5, 0)}
	if err := h.w.Save(b); err == nil {
		t.Fatal("no error")
	}
	h.fs.before = nil
	// The write is not on the disk, and no later sync writes it.
	var kept []op
	for _, o := range h.fs.ops {
		if o.kind != opWrite || o.inode != lost.inode || o.at != lost.at || len(o.data) != len(lost.data) {
			kept = append(kept, o)
		}
	}
	if len(kept) != len(h.fs.ops)-1 {
		t.Fatalf("%d operations left out", len(h.fs.ops)-len(kept))
	}
	h.fs.ops = kept
	_, st, err := openCrash(h.fs, 9)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := openCrash(newCrashFS(h.fs.image(len(h.fs.ops), never)), 9)
	if err != nil {
		t.Fatalf("what the process found in memory is not on the disk: %v", err)
	}
	if err := sameState(got, st); err != nil {
		t.Fatalf("what the process found in memory is not on the disk: %v", err)
	}
}

// Each frame must be synced before the next one is written, during open too. Otherwise a crash
// could leave a mark after a lost frame, which counts as damage.
func TestNothingIsWrittenBehindWhatIsNotDurable(t *testing.T) {
	h := newHistory(1, nil, raftlog.State{})
	if err := h.run(10); err != nil {
		t.Fatal(err)
	}
	fs := newCrashFS(h.fs.live())
	if _, _, err := openCrash(fs, 9); err != nil {
		t.Fatal(err)
	}
	written := map[int]bool{} // written and not synced
	writes := 0
	for _, o := range fs.ops {
		switch o.kind {
		case opWrite:
			if writes++; written[o.inode] {
				t.Errorf("%v is written behind a frame that is not durable", o)
			}
			written[o.inode] = true
		case opSync:
			written[o.inode] = false
		}
	}
	if writes < 3 {
		t.Errorf("%d writes at open: the last frame and two marks are expected", writes)
	}
}

func TestOneSyncPerSave(t *testing.T) {
	fs := newCrashFS(nil)
	w := foundedCrash(t, fs)
	count := func(b raftlog.Batch) (kinds []opKind) {
		from := len(fs.ops)
		if err := w.Save(b); err != nil {
			t.Fatal(err)
		}
		for _, o := range fs.ops[from:] {
			kinds = append(kinds, o.kind)
		}
		return kinds
	}
	index := uint64(2)
	for range 20 {
		kinds := count(raftlog.Batch{HardState: testHard(2, 5, index-1), Entries: testEntries(index, 2, 1, 200)})
		if len(kinds) != 2 || kinds[0] != opWrite || kinds[1] != opSync {
			t.Fatalf("a Save does %v, want one write and one sync", kinds)
		}
		index++
	}
	if kinds := count(raftlog.Batch{HardState: testHard(2, 5, index-1)}); len(kinds) != 2 {
		t.Errorf("a new commit index alone does %v, want one write and one sync", kinds)
	}
	if kinds := count(raftlog.Batch{HardState: testHard(3, 0, index-1)}); len(kinds) != 2 {
		t.Errorf("a new term does %v, want one write and one sync", kinds)
	}
	if kinds := count(raftlog.Batch{}); len(kinds) != 0 {
		t.Errorf("an empty batch does %v", kinds)
	}
}

func TestSegmentsAreUsedAgain(t *testing.T) {
	fs := newCrashFS(nil)
	w := foundedCrash(t, fs)
	created := 0
	for index := uint64(2); index < 1000; index++ {
		b := raftlog.Batch{Entries: testEntries(index, 1, 1, 1000)}
		if index%25 == 0 {
			b.Snapshot = testSnapshot(index-1, 1, 100)
		}
		if err := w.Save(b); err != nil {
			t.Fatal(err)
		}
		if len(fs.names) > 7 {
			t.Fatalf("entry %d: %d files", index, len(fs.names))
		}
	}
	for _, o := range fs.ops {
		if o.kind == opAllocate {
			created++
		}
	}
	if w.header.sequence < 50 || created*4 > int(w.header.sequence) {
		t.Errorf("%d segments were begun and %d files made for them", w.header.sequence, created)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCallerFaults(t *testing.T) {
	founded := raftlog.Batch{Identity: &crashID, HardState: testHard(1, 0, 1), Snapshot: testSnapshot(1, 1, 10)}
	gap := testEntries(2, 1, 3, 5)
	gap = append(gap[:1], gap[2])
	for name, c := range map[string][]raftlog.Batch{
		"no identity":       {{HardState: testHard(1, 0, 0)}},
		"another identity":  {{Identity: &raftlog.Identity{Group: 1, ID: 1}}},
		"identity twice":    {founded, founded},
		"a gap":             {founded, {Entries: testEntries(3, 1, 1, 5)}},
		"a gap in entries":  {founded, {Entries: gap}},
		"gap after install": {founded, {Snapshot: testSnapshot(9, 2, 5), Entries: testEntries(11, 2, 1, 5)}},
	} {
		w, _, err := openCrash(newCrashFS(nil), 1)
		if err != nil {
			t.Fatal(err)
		}
		for i, b := range c {
			err := w.Save(b)
			if last := i == len(c)-1; last != (err != nil) {
				t.Errorf("%s: batch %d: %v", name, i, err)
			}
		}
	}
}

func foundedCrash(t *testing.T, fs *crashFS) *wal {
	t.Helper()
	w, _, err := openCrash(fs, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Save(raftlog.Batch{Identity: &crashID, HardState: testHard(1, 0, 1),
		Snapshot: testSnapshot(1, 1, 10)}); err != nil {
		t.Fatal(err)
	}
	return w
}

// A Save with only a commit index must be durable, like any other Save.
func TestCommitAlone(t *testing.T) {
	fs := newCrashFS(nil)
	w := foundedCrash(t, fs)
	if err := w.Save(raftlog.Batch{Entries: testEntries(2, 1, 3, 9)}); err != nil {
		t.Fatal(err)
	}
	if err := w.Save(raftlog.Batch{HardState: testHard(1, 0, 3)}); err != nil {
		t.Fatal(err)
	}
	_, st, err := openCrash(newCrashFS(fs.image(len(fs.ops), never)), 1)
	if err != nil || st.HardState.GetCommit() != 3 {
		t.Errorf("after a crash: commit index %d, %v, want 3", st.HardState.GetCommit(), err)
	}
}
