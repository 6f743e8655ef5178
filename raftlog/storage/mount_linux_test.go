package storage

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mortise-lock/mortise/raftlog"
)

// TestReadOnlyAndFullDisk needs the right to mount a file system.
func TestReadOnlyAndFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("none", path, "tmpfs", 0, "size=400k"); err != nil {
		t.Skipf("no mount here: %v", err)
	}
	defer unix.Unmount(path, unix.MNT_DETACH)
	var log bytes.Buffer
	cfg := Config{Path: filepath.Join(path, "d"), SegmentBytes: 64 << 10,
		Logger: slog.New(slog.NewTextHandler(&log, nil))}
	d, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "tmpfs") {
		t.Errorf("no warning that the directory is in memory: %s", &log)
	}
	s := beginLog(t, d, 7, 1)
	last := uint64(1)
	for err == nil {
		if err = s.Save(raftlog.Batch{Entries: testEntries(last+1, 1, 1, 5000)}); err == nil {
			last++
		}
	}
	refused(t, err, raftlog.ErrStorage, "no space left", "free or repair the disk", path)
	closeDir(t, d)
	if err := unix.Mount("none", path, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = Open(cfg)
	refused(t, err, raftlog.ErrStorage, "read-only", cfg.Path, "may write to")
	if err := unix.Mount("none", path, "", unix.MS_REMOUNT, "size=2m"); err != nil {
		t.Fatal(err)
	}
	d, err = Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	s, err = d.Log(7, 1)
	if err != nil {
		t.Fatal(err)
	}
	st, err := s.Load()
	if n := len(st.Entries); err != nil || uint64(n) != last-1 {
		t.Fatalf("%d entries, %v, want %d", n, err, last-1)
	}
	if err := s.Save(raftlog.Batch{Entries: testEntries(last+1, 1, 1, 5000)}); err != nil {
		t.Fatal(err)
	}
}
