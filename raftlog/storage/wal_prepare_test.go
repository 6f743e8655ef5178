package storage

import (
	"context"
	"errors"
	"io/fs"

	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/raft/v3/raftpb"

	"github.com/mortise-lock/mortise/raftlog"
)

type heldFS struct {
	FS
	held chan struct{} // receives a value when a write blocks
	free chan struct{}
}

func (h heldFS) Create(path string) (File, error) {
	f, err := h.FS.Create(path)
	if err == nil && strings.HasPrefix(filepath.Base(path), snapPrefix) {
		return heldFile{f, h}, nil
	}
	return f, err
}

type heldFile struct {
	File
	fs heldFS
}

func (f heldFile) WriteAt(b []byte, at int64) (int, error) {
	select {
	case <-f.fs.free:
	case f.fs.held <- struct{}{}:
		<-f.fs.free
	}
	return f.File.WriteAt(b, at)
}

func snapshotFiles(t *testing.T, d *Dir) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(d.cfg.Path, snapPrefix+"*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A blocked Prepare must not delay a Save. The log and its directory cannot be closed meanwhile,
// because the write may still happen.
func TestSaveGoesOnBesideAPrepare(t *testing.T) {
	hold := heldFS{OSFS(), make(chan struct{}), make(chan struct{})}
	d := mustDir(t, filepath.Join(t.TempDir(), "d"))
	s := beginLog(t, d, 7, 1)
	s.(*wal).fs = hold
	if err := s.Save(raftlog.Batch{Entries: testEntries(2, 1, 5, 100)}); err != nil {
		t.Fatal(err)
	}
	snap, prepared := testSnapshot(4, 1, 3000), make(chan error)
	go func() { prepared <- s.Prepare(t.Context(), snap) }()
	<-hold.held
	for i := range uint64(50) {
		if err := s.Save(raftlog.Batch{Entries: testEntries(7+i, 1, 1, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	refused(t, s.Close(), raftlog.ErrHung, d.cfg.Path)
	refused(t, d.DropLog(), ErrLogOpen)
	close(hold.free)
	if err := <-prepared; err != nil {
		t.Fatal(err)
	}
	if err := s.Save(raftlog.Batch{Snapshot: snap, Prepared: true, Entries: testEntries(57, 1, 1, 10)}); err != nil {
		t.Fatal(err)
	}
	st, err := s.Load()
	if err != nil || st.Snapshot.GetMetadata().GetIndex() != 4 || len(st.Entries) != 53 ||
		len(snapshotFiles(t, d)) != 2 {
		t.Errorf("snapshot at %d, %d entries, files %v (%v)", st.Snapshot.GetMetadata().GetIndex(), len(st.Entries),
			snapshotFiles(t, d), err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A prepared snapshot that was never named is removed with the next snapshot, at the next open, and
// when the log ends.
func TestWhatIsPreparedAndNotNamedGoes(t *testing.T) {
	for name, after := range map[string]func(t *testing.T, d *Dir, s raftlog.Store){
		"another is prepared": func(t *testing.T, d *Dir, s raftlog.Store) {
			other := testSnapshot(5, 1, 20)
			if err := s.Prepare(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			if n := len(snapshotFiles(t, d)); n != 2 {
				t.Errorf("%d files", n)
			}
			if err := s.Save(raftlog.Batch{Snapshot: other, Prepared: true}); err != nil {
				t.Fatal(err)
			}
			if n := len(snapshotFiles(t, d)); n != 2 {
				t.Errorf("%d files", n)
			}
			last := testSnapshot(6, 1, 20)
			if err := errors.Join(s.Prepare(t.Context(), last), s.Save(raftlog.Batch{Snapshot: last, Prepared: true}),
				s.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Log(7, 1); err != nil {
				t.Fatal(err)
			}
		},
		"another replica's is saved": func(t *testing.T, d *Dir, s raftlog.Store) {
			if err := s.Save(raftlog.Batch{Snapshot: testSnapshot(50, 2, 20)}); err != nil {
				t.Fatal(err)
			}
		},
		"opened again": func(t *testing.T, d *Dir, s raftlog.Store) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := d.Log(7, 1); err != nil {
				t.Fatal(err)
			}
		},
		"another log": func(t *testing.T, d *Dir, s raftlog.Store) {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			beginLog(t, d, 7, 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := mustDir(t, filepath.Join(t.TempDir(), "d"))
			s := beginLog(t, d, 7, 1)
			if err := errors.Join(s.Save(raftlog.Batch{Entries: testEntries(2, 1, 9, 10)}),
				s.Prepare(t.Context(), testSnapshot(4, 1, 100))); err != nil {
				t.Fatal(err)
			}
			if n := len(snapshotFiles(t, d)); n != 2 {
				t.Fatalf("%d files", n)
			}
			if after(t, d, s); len(snapshotFiles(t, d)) != 1 {
				t.Errorf("files %v", snapshotFiles(t, d))
			}
		})
	}
	d := mustDir(t, filepath.Join(t.TempDir(), "d"))
	s := beginLog(t, d, 7, 1)
	if err := errors.Join(s.Prepare(t.Context(), testSnapshot(1, 1, 100)), s.Close(), d.DropLog()); err != nil ||
		len(snapshotFiles(t, d)) != 0 {
		t.Errorf("%v, files %v", err, snapshotFiles(t, d))
	}
}

// When ctx ends, Prepare removes its file. This is not a disk error.
func TestPrepareStops(t *testing.T) {
	hold := heldFS{OSFS(), make(chan struct{}), make(chan struct{})}
	d := mustDir(t, filepath.Join(t.TempDir(), "d"))
	s := beginLog(t, d, 7, 1)
	s.(*wal).fs = hold
	ctx, cancel := context.WithCancel(t.Context())
	prepared := make(chan error)
	go func() { prepared <- s.Prepare(ctx, testSnapshot(1, 1, 8<<20)) }()
	<-hold.held
	cancel()
	close(hold.free)
	if err := <-prepared; !errors.Is(err, context.Canceled) || errors.Is(err, raftlog.ErrStorage) ||
		len(snapshotFiles(t, d)) != 1 {
		t.Errorf("%v, files %v", err, snapshotFiles(t, d))
	}
	if err := errors.Join(s.Save(raftlog.Batch{Entries: testEntries(2, 1, 1, 10)}), s.Close()); err != nil {
		t.Error(err)
	}
}

func TestPrepareSyncsPieceByPiece(t *testing.T) {
	fs := newCrashFS(nil)
	w := foundedCrash(t, fs)
	from := len(fs.ops)
	snap := testSnapshot(1, 1, 5<<20/2)
	if err := w.Prepare(t.Context(), snap); err != nil {
		t.Fatal(err)
	}
	unsynced, syncs := 0, 0
	for _, o := range fs.ops[from:] {
		switch o.kind {
		case opWrite:
			if unsynced += len(o.data); unsynced > snapshotPieceBytes {
				t.Errorf("%d bytes are written and not synced", unsynced)
			}
		case opSync:
			unsynced, syncs = 0, syncs+1
		}
	}
	if last := fs.ops[len(fs.ops)-1]; syncs != 3 || unsynced != 0 || last.kind != opSyncDir {
		t.Errorf("%d syncs, %d bytes not synced, last %v", syncs, unsynced, last)
	}
	if err := w.Save(raftlog.Batch{Snapshot: snap, Prepared: true}); err != nil {
		t.Fatal(err)
	}
	if _, st, err := openCrash(newCrashFS(fs.image(len(fs.ops), never)), 2); err != nil ||
		len(st.Snapshot.GetData()) != 5<<20/2 {
		t.Errorf("%d bytes (%v)", len(st.Snapshot.GetData()), err)
	}
}

// A Save can name only the snapshot that was prepared last. An error of Prepare is final.
func TestPrepareFaults(t *testing.T) {
	a, b := testSnapshot(1, 1, 10), testSnapshot(1, 1, 10)
	for name, prepare := range map[string][]*raftpb.Snapshot{"nothing": nil, "another": {a}, "another since": {b, a}} {
		w := foundedCrash(t, newCrashFS(nil))
		for _, s := range prepare {
			if err := w.Prepare(t.Context(), s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Save(raftlog.Batch{Snapshot: b, Prepared: true}); !errors.Is(err, raftlog.ErrStorage) {
			t.Errorf("%s is prepared: %v", name, err)
		}
	}
	disk := newCrashFS(nil)
	w := foundedCrash(t, disk)
	disk.before = func(o op) error {
		if o.kind == opSync {
			return fs.ErrInvalid
		}
		return nil
	}
	err := w.Prepare(t.Context(), a)
	refused(t, err, raftlog.ErrStorage, "start the instance again")
	disk.before = nil
	if again := w.Save(raftlog.Batch{Entries: testEntries(2, 1, 1, 10)}); again != err {
		t.Errorf("then Save says %v", again)
	}
	if again := w.Prepare(t.Context(), a); again != err {
		t.Errorf("then Prepare says %v", again)
	}
	closed := foundedCrash(t, newCrashFS(nil))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	refused(t, closed.Prepare(t.Context(), a), raftlog.ErrClosed)
}
