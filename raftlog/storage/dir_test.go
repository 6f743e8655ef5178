package storage

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-lock/mortise/raftlog"
)

func quietDir(path string) (*Dir, error) {
	return Open(Config{Path: path, SegmentBytes: crashSegment, Logger: slog.New(slog.DiscardHandler)})
}

func mustDir(t *testing.T, path string) *Dir {
	t.Helper()
	d, err := quietDir(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func beginLog(t *testing.T, d *Dir, group, id uint64) raftlog.Store {
	t.Helper()
	s, err := d.Log(group, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Save(raftlog.Batch{Identity: &raftlog.Identity{Group: group, ID: id}, HardState: testHard(1, id, 1),
		Snapshot: testSnapshot(1, 1, 100)}); err != nil {
		t.Fatal(err)
	}
	return s
}

func refused(t *testing.T, err, kind error, words ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("%v, want %v", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}

func closeDir(t *testing.T, d *Dir) {
	t.Helper()
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestDirSecondOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	_, err := quietDir(path)
	refused(t, err, ErrInUse, path, "stop the other one")
	closeDir(t, d)
	closeDir(t, d)
	mustDir(t, path)
}

func TestDirRecords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	check := func(want map[string]string) {
		t.Helper()
		for range 2 {
			for name, w := range want {
				if got, err := d.Get(name); err != nil || string(got) != w || (got == nil) != (w == "") {
					t.Errorf("record %q: %q, %v, want %q", name, got, err, w)
				}
			}
			closeDir(t, d)
			d = mustDir(t, path)
		}
	}
	put := func(records map[string][]byte) {
		t.Helper()
		if err := d.Put(records); err != nil {
			t.Fatal(err)
		}
	}
	check(map[string]string{"a": ""})
	value := []byte("one")
	put(map[string][]byte{"a": value, "b": []byte("two")})
	value[0] = 'x' // Put must have copied the value
	check(map[string]string{"a": "one", "b": "two", "c": ""})
	large := strings.Repeat("large", 1<<16)
	put(map[string][]byte{"a": nil, "c": []byte(large)})
	check(map[string]string{"a": "", "b": "two", "c": large})
	for _, bad := range []map[string][]byte{{"": nil}, {strings.Repeat("n", 256): nil}, {"z": make([]byte, 5<<20)}} {
		if d.Put(bad) == nil {
			t.Error("taken: a name that is too short or too long, or too much data")
		}
	}
	put(map[string][]byte{"b": []byte("three")})
	check(map[string]string{"b": "three", "c": large})
	closeDir(t, d)
	_, err := d.Get("b")
	refused(t, err, raftlog.ErrClosed)
	refused(t, d.Put(nil), raftlog.ErrClosed)
	_, err = d.Log(1, 2)
	refused(t, err, raftlog.ErrClosed)
}

func TestDirLogs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	for _, id := range [][2]uint64{{0, 1}, {1, 0}, {1, 1<<64 - 1}} {
		if _, err := d.Log(id[0], id[1]); err == nil {
			t.Errorf("group %d, replica %d: no error", id[0], id[1])
		}
	}
	s := beginLog(t, d, 7, 1)
	_, err := d.Log(7, 2)
	refused(t, err, ErrLogOpen, "close it first")
	refused(t, d.DropLog(), ErrLogOpen)
	for i := range uint64(100) {
		if err := s.Save(raftlog.Batch{Entries: testEntries(2+i, 1, 1, 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Log(8, 1)
	refused(t, err, raftlog.ErrIdentity, "another raft ID")

	// When another replica begins, the log of the first one ends, and its files are reused.
	s = beginLog(t, d, 8, 2)
	st, err := s.Load()
	if err != nil || st.Identity != (raftlog.Identity{Group: 8, ID: 2}) || len(st.Entries) != 0 {
		t.Fatalf("%v, %v", st, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if l, _ := list(OSFS(), path); len(l.segments) != 1 || len(l.segments[2]) != 1 || len(l.snapshots[1]) != 0 {
		t.Errorf("files of the first log are left: %v", l)
	}
	_, err = d.Log(7, 1)
	refused(t, err, ErrEnded, "another raft ID")
	closeDir(t, d)

	d = mustDir(t, path)
	_, err = d.Log(7, 1)
	refused(t, err, ErrEnded)
	s, err = d.Log(8, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.DropLog(); err != nil {
		t.Fatal(err)
	}
	_, err = d.Log(8, 2)
	refused(t, err, ErrEnded)
	beginLog(t, d, 8, 3)
	closeDir(t, d) // this closes the log too
	d = mustDir(t, path)
	if s, err = d.Log(8, 3); err != nil {
		t.Fatal(err)
	}
	if st, err = s.Load(); err != nil || st.Identity.ID != 3 {
		t.Fatalf("%v, %v", st, err)
	}
}

func TestMissingLog(t *testing.T) {
	for name, c := range map[string]struct {
		pattern string
		words   string
		atOpen  bool
	}{
		"segments": {"wal-*", "are missing", false},
		"snapshot": {"snap-*", "no such file", false},
		"meta.db":  {"meta.db", "is missing although", true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "d")
			d := mustDir(t, path)
			beginLog(t, d, 7, 1)
			closeDir(t, d)
			files, _ := filepath.Glob(filepath.Join(path, c.pattern))
			if len(files) == 0 {
				t.Fatal("no file")
			}
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
			d, err := quietDir(path)
			if err == nil {
				defer d.Close()
				_, err = d.Log(7, 1)
			} else if !c.atOpen {
				t.Fatal(err)
			}
			refused(t, err, raftlog.ErrCorrupt, path, c.words, "remove the whole directory")
		})
	}
}

func TestMixedDirs(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	for i, path := range []string{a, b} {
		d := mustDir(t, path)
		beginLog(t, d, 7, uint64(i)+1)
		closeDir(t, d)
	}
	files, _ := filepath.Glob(filepath.Join(a, "wal-*"))
	if err := os.Rename(files[0], filepath.Join(b, filepath.Base(files[0]))); err != nil {
		t.Fatal(err)
	}
	_, err := mustDir(t, b).Log(7, 2)
	refused(t, err, raftlog.ErrCorrupt, "does not record", "remove the whole directory")
}

// A copy is refused until the operator has removed the file origin.
func TestCopiedDir(t *testing.T) {
	path, other := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	d := mustDir(t, path)
	beginLog(t, d, 7, 1)
	closeDir(t, d)
	if err := os.CopyFS(other, os.DirFS(path)); err != nil {
		t.Fatal(err)
	}
	if _, numbers := mount(other); !numbers {
		t.Skip("this file system does not number its files")
	}
	_, err := quietDir(other)
	refused(t, err, ErrCopied, other, "origin", "Remove the whole directory")
	if err := os.Remove(filepath.Join(other, originName)); err != nil {
		t.Fatal(err)
	}
	if _, err := mustDir(t, other).Log(7, 1); err != nil {
		t.Fatal(err)
	}
	// A directory that was moved within its file system is not a copy.
	moved := filepath.Join(filepath.Dir(path), "moved")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	mustDir(t, moved)
}

// The instance can join under another raft ID.
func TestDamagedLogCanBeGivenUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	beginLog(t, d, 7, 1)
	closeDir(t, d)
	files, _ := filepath.Glob(filepath.Join(path, "wal-*"))
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	data[headerBytes+40] ^= 4
	if err := os.WriteFile(files[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	d = mustDir(t, path)
	for range 2 {
		_, err = d.Log(7, 1)
		refused(t, err, raftlog.ErrCorrupt, files[0], "offset 4096", "cannot go on under its raft ID",
			"remove the whole directory")
	}
	beginLog(t, d, 7, 2)
}

// An error of a log is final for its raft ID, but not for the directory.
func TestFailedLogStaysFailed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	s := beginLog(t, d, 7, 1)
	s.(*wal).file.Close() // every write fails from now on
	err := s.Save(raftlog.Batch{Entries: testEntries(2, 1, 1, 10)})
	refused(t, err, raftlog.ErrStorage, path)
	if again := s.Save(raftlog.Batch{Entries: testEntries(2, 1, 1, 10)}); again != err {
		t.Errorf("then %v", again)
	}
	s.Close()
	if _, again := d.Log(7, 1); again != err {
		t.Errorf("Log of it: %v", again)
	}
	if err := d.Put(map[string][]byte{"still": []byte("works")}); err != nil {
		t.Error(err)
	}
	beginLog(t, d, 7, 2)
}

type stuckFS struct {
	FS
	stuck chan struct{} // receives a value when a sync hangs
	free  chan struct{}
}

func (s stuckFS) Open(path string) (File, error) {
	f, err := s.FS.Open(path)
	return stuckFile{f, s}, err
}

type stuckFile struct {
	File
	fs stuckFS
}

func (f stuckFile) Sync() error {
	select {
	case <-f.fs.free:
	case f.fs.stuck <- struct{}{}:
		<-f.fs.free
	}
	return f.File.Sync()
}

// A hanging disk must block the Save and no other call.
func TestDirHangs(t *testing.T) {
	fs := stuckFS{OSFS(), make(chan struct{}), make(chan struct{})}
	d, err := Open(Config{Path: filepath.Join(t.TempDir(), "d"), Files: fs, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Log(7, 1)
	if err != nil {
		t.Fatal(err)
	}
	saved := make(chan error)
	go func() {
		saved <- s.Save(raftlog.Batch{Identity: &raftlog.Identity{Group: 7, ID: 1}})
	}()
	<-fs.stuck
	if err := d.Put(map[string][]byte{"a": nil}); err != nil {
		t.Error(err)
	}
	for range 2 {
		refused(t, d.Close(), raftlog.ErrHung, d.cfg.Path)
	}
	_, err = quietDir(d.cfg.Path)
	refused(t, err, ErrInUse)
	close(fs.free)
	if err := <-saved; err != nil {
		t.Error(err)
	}
	d.meta.close()
	d.lock.Close()
}

func TestConfig(t *testing.T) {
	for _, cfg := range []Config{{}, {Path: "x", SegmentBytes: 1}, {Path: "x", SegmentBytes: maxSegmentBytes + 1},
		{Path: "x", SegmentBytes: -1}} {
		if _, err := Open(cfg); err == nil {
			t.Errorf("%+v: no error", cfg)
		}
	}
	path := filepath.Join(t.TempDir(), "no", "parent")
	_, err := quietDir(path)
	refused(t, err, raftlog.ErrStorage, path)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = quietDir(file)
	refused(t, err, raftlog.ErrStorage, fmt.Sprint(file))
}

// A file that cannot be written or read is a fault of the disk, whichever it is.
func TestAFileThatCannotBeUsedIsAFaultOfTheDisk(t *testing.T) {
	for _, name := range []string{originName + ".tmp", originName, metaName + ".tmp", metaName, lockName} {
		path := filepath.Join(t.TempDir(), "d")
		if err := os.MkdirAll(filepath.Join(path, name, "inside"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, numbers := mount(path); !numbers && strings.HasPrefix(name, originName) {
			continue // this file system does not number its files
		}
		d, err := quietDir(path)
		if err == nil {
			closeDir(t, d)
		}
		if !errors.Is(err, raftlog.ErrStorage) {
			t.Errorf("%s is a directory: %v", name, err)
		}
	}
}

// The terms of a log may be far above or below its indexes.
func TestTermsAreNoIndexes(t *testing.T) {
	for _, term := range []uint64{1, 7, 1000} {
		path, model := filepath.Join(t.TempDir(), "d"), raftlog.NewMemoryStore()
		for i, b := range []raftlog.Batch{
			{Identity: &raftlog.Identity{Group: 7, ID: 1}, HardState: testHard(term, 1, 5),
				Snapshot: testSnapshot(5, term, 100)},
			{Entries: testEntries(6, term, 3, 10)},
			{Snapshot: testSnapshot(20, term+1, 100)}, // of another replica, after a gap
			{Entries: testEntries(21, term+1, 3, 10), HardState: testHard(term+1, 1, 20)},
			{Snapshot: testSnapshot(22, term+1, 100)}, // of this replica
			{Snapshot: testSnapshot(30, term+2, 100), Entries: testEntries(31, term+2, 2, 10)},
		} {
			d := mustDir(t, path)
			s, err := d.Log(7, 1)
			if err == nil {
				err = errors.Join(s.Save(b), model.Save(b))
			}
			if err != nil {
				t.Fatalf("term %d, batch %d: %v", term, i, err)
			}
			closeDir(t, d)
			d = mustDir(t, path)
			if s, err = d.Log(7, 1); err != nil {
				t.Fatalf("term %d, after batch %d: %v", term, i, err)
			}
			got, err := s.Load()
			want, _ := model.Load()
			if err != nil || sameState(got, want) != nil {
				t.Errorf("term %d, after batch %d: %v, %v", term, i, err, sameState(got, want))
			}
			closeDir(t, d)
		}
	}
}
