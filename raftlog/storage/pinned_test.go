package storage

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/raftlog"
)

// TestTheLogWritesWhatItWrote pins each operation of the log on its files: the kind, the name, the
// offset, the bytes and the order, of random histories with restarts and of what an open does after
// a power loss. Another order can lose what was acknowledged, and other bytes can be unreadable for
// a version that is installed. Only a new format, or a new way to use the files, may change a sum.
func TestTheLogWritesWhatItWrote(t *testing.T) {
	for seed, want := range []string{
		"725 1daf3e8d12a45938", "972 4966327e6bbc7dc4", "759 e8dfbad628f15907", "899 d6f17aa1ca9dc16f",
	} {
		sum, lines := sha256.New(), []string{}
		note := func(ops []op) {
			for _, o := range ops {
				fmt.Fprintf(sum, "%s %x\n", o, sha256.Sum256(o.data))
				lines = append(lines, o.String())
			}
		}
		h := newHistory(uint64(seed), nil, raftlog.State{})
		if err := h.run(60); err != nil {
			t.Fatal(err)
		}
		note(h.fs.ops)
		for n := range 20 { // torn in different ways, and opened again
			at := len(h.fs.ops) * (n + 1) / 20
			again := newCrashFS(h.fs.image(at, sometimes(h.r, float64(n%5)/4)))
			w, st, err := openCrash(again, uint64(n))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(sum, "%v %d %d %d\n", st.Identity, st.HardState.GetTerm(), len(st.Entries), len(w.spares))
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			note(again.ops)
		}
		if got := fmt.Sprintf("%d %x", len(lines), sum.Sum(nil)[:8]); got != want {
			t.Errorf("seed %d: %s, want %s; the first operations are\n%s", seed, got, want,
				strings.Join(lines[:min(60, len(lines))], "\n"))
		}
	}
}

// heard is an FS that notes what changes the files, by name.
type heard struct {
	FS
	list *[]string
}

var zeros = regexp.MustCompile("-0+")

func (h heard) note(form string, args ...any) {
	*h.list = append(*h.list, zeros.ReplaceAllString(fmt.Sprintf(form, args...), "-"))
}

func (h heard) Create(path string) (File, error) {
	h.note("create %s", filepath.Base(path))
	f, err := h.FS.Create(path)
	return heardFile{f, h, filepath.Base(path)}, err
}

func (h heard) Open(path string) (File, error) {
	h.note("open %s", filepath.Base(path))
	f, err := h.FS.Open(path)
	return heardFile{f, h, filepath.Base(path)}, err
}

func (h heard) Rename(from, to string) error {
	h.note("rename %s to %s", filepath.Base(from), filepath.Base(to))
	return h.FS.Rename(from, to)
}

func (h heard) Remove(path string) error {
	h.note("remove %s", filepath.Base(path))
	return h.FS.Remove(path)
}

func (h heard) SyncDir(dir string) error {
	h.note("sync the directory")
	return h.FS.SyncDir(dir)
}

type heardFile struct {
	File
	fs   heard
	name string
}

func (f heardFile) WriteAt(b []byte, at int64) (int, error) {
	f.fs.note("write %s %d+%d", f.name, at, len(b))
	return f.File.WriteAt(b, at)
}

func (f heardFile) Allocate(size int64) error {
	f.fs.note("allocate %s %d", f.name, size)
	return f.File.Allocate(size)
}

func (f heardFile) Sync() error {
	f.fs.note("sync %s", f.name)
	return f.File.Sync()
}

func (f heardFile) Close() error {
	f.fs.note("close %s", f.name)
	return f.File.Close()
}

// TestWhatADirDoesToItsFiles compares all operations of a directory from its first open: a log
// begins, gets snapshots, is opened again, ends for another log, and that one is dropped. meta.db
// is not written through the FS, so its content is listed.
func TestWhatADirDoesToItsFiles(t *testing.T) {
	var list []string
	path := filepath.Join(t.TempDir(), "d")
	open := func() *Dir {
		t.Helper()
		d, err := Open(Config{Path: path, Files: heard{OSFS(), &list}, SegmentBytes: 16 << 10})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	fail := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var d *Dir
	var s raftlog.Store
	log := func(id uint64) raftlog.Store {
		s, err := d.Log(7, id)
		fail(err)
		return s
	}
	founding := func(id uint64) raftlog.Batch {
		return raftlog.Batch{Identity: &raftlog.Identity{Group: 7, ID: id}, HardState: testHard(1, 0, 1),
			Snapshot: testSnapshot(1, 1, 10)}
	}
	own := testSnapshot(5, 1, 20)
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"a new directory", func() { d = open() }},
		{"records", func() { fail(d.Put(map[string][]byte{"a": {1}})) }},
		{"a new log", func() { s = log(1) }},
		{"its first batch", func() { fail(s.Save(founding(1))) }},
		{"entries", func() { fail(s.Save(raftlog.Batch{Entries: testEntries(2, 1, 3, 100)})) }},
		{"the next segment", func() { fail(s.Save(raftlog.Batch{Entries: testEntries(5, 1, 1, 12000)})) }},
		{"nothing to save", func() { fail(s.Save(raftlog.Batch{})) }},
		{"a snapshot is prepared", func() { fail(s.Prepare(t.Context(), own)) }},
		{"it is saved", func() { fail(s.Save(raftlog.Batch{Snapshot: own, Prepared: true})) }},
		{"the next is prepared", func() { fail(s.Prepare(t.Context(), testSnapshot(5, 1, 20))) }},
		{"another replica's is saved", func() { fail(s.Save(raftlog.Batch{Snapshot: testSnapshot(50, 2, 20)})) }},
		{"the log is closed", func() { fail(s.Close()) }},
		{"it is opened again", func() { s = log(1) }},
		{"eight segments", func() {
			for i := range uint64(8) {
				fail(s.Save(raftlog.Batch{Entries: testEntries(51+i, 2, 1, 12000)}))
			}
		}},
		{"a large snapshot keeps more spares", func() {
			fail(s.Save(raftlog.Batch{Snapshot: testSnapshot(58, 2, 35000)}))
		}},
		{"a small one keeps few", func() {
			for i := range uint64(3) {
				fail(s.Save(raftlog.Batch{Entries: testEntries(59+i, 2, 1, 12000)}))
			}
			fail(s.Save(raftlog.Batch{Snapshot: testSnapshot(61, 2, 20)}))
		}},
		{"the next removes the others", func() { fail(s.Prepare(t.Context(), testSnapshot(61, 2, 20))) }},
		{"the directory is closed", func() { fail(d.Close()) }},
		{"it is opened", func() { d = open() }},
		{"another log begins", func() { s = log(2) }},
		{"its first batch uses a spare", func() { fail(s.Save(founding(2))) }},
		{"it is closed", func() { fail(s.Close()) }},
		{"it is dropped", func() { fail(d.DropLog()) }},
		{"a look", func() { _, err := d.Look(time.Minute, false); fail(err) }},
		{"a look that writes", func() { _, err := d.Look(time.Minute, true); fail(err) }},
		{"another one", func() { _, err := d.Look(time.Minute, true); fail(err) }},
		{"the end", func() { fail(d.Close()) }},
	} {
		list = append(list, "# "+step.what)
		step.do()
		list = append(list, fmt.Sprintf("meta.db has change %d, logs %v", d.meta.generation, d.meta.logs))
	}
	want, err := os.ReadFile("testdata/operations.txt")
	fail(err)
	if got := strings.Join(list, "\n") + "\n"; got != string(want) {
		t.Errorf("%s\nis not what testdata/operations.txt has", got)
	}
}
