package storage

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mortise-lock/mortise/raftlog"
)

// countedFS fails one call, which it counts down to.
type countedFS struct {
	FS
	left *atomic.Int64 // calls until the one that fails; the later ones succeed
	open *atomic.Int64 // files that are open
}

func (c countedFS) next() error {
	if c.left.Add(-1) == -1 {
		return syscall.EIO
	}
	return nil
}

func countedOf[T any](c countedFS, call func() (T, error)) (result T, err error) {
	if err = c.next(); err == nil {
		result, err = call()
	}
	return result, err
}

func (c countedFS) file(open func(string) (File, error), path string) (File, error) {
	return countedOf(c, func() (File, error) {
		f, err := open(path)
		if err == nil {
			c.open.Add(1)
		}
		return countedFile{f, c}, err
	})
}

func (c countedFS) Create(path string) (File, error) { return c.file(c.FS.Create, path) }
func (c countedFS) Open(path string) (File, error)   { return c.file(c.FS.Open, path) }
func (c countedFS) List(dir string) ([]string, error) {
	return countedOf(c, func() ([]string, error) { return c.FS.List(dir) })
}
func (c countedFS) Rename(from, to string) error {
	return errors.Join(c.next(), c.FS.Rename(from, to))
}
func (c countedFS) Remove(path string) error { return errors.Join(c.next(), c.FS.Remove(path)) }
func (c countedFS) SyncDir(dir string) error { return errors.Join(c.next(), c.FS.SyncDir(dir)) }

type countedFile struct {
	File
	fs countedFS
}

func (f countedFile) ReadAt(b []byte, at int64) (int, error) {
	return countedOf(f.fs, func() (int, error) { return f.File.ReadAt(b, at) })
}

func (f countedFile) WriteAt(b []byte, at int64) (int, error) {
	return countedOf(f.fs, func() (int, error) { return f.File.WriteAt(b, at) })
}

func (f countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

func (f countedFile) Size() (int64, error) { return countedOf(f.fs, f.File.Size) }
func (f countedFile) Sync() error          { return errors.Join(f.fs.next(), f.File.Sync()) }

// TestAnErrorAtEachCallOfTheOpening opens a directory with a log while one call of the file system
// fails, reads too, for each call. The error has its cause, or the call does not matter; the
// directory is not damaged, and is free again. No file stays open.
func TestAnErrorAtEachCallOfTheOpening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := mustDir(t, path)
	beginLog(t, d, 7, 1)
	closeDir(t, d)
	open := func(files FS) error {
		d, err := Open(Config{Path: path, SegmentBytes: crashSegment, Files: files, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		_, err = d.Log(7, 1)
		return errors.Join(err, d.Close())
	}
	failed := 0
	for n := int64(0); ; n++ {
		left, files := &atomic.Int64{}, &atomic.Int64{}
		left.Store(n)
		err := open(countedFS{OSFS(), left, files})
		if files.Load() != 0 {
			t.Errorf("call %d: %d files are open", n, files.Load())
		}
		if left.Load() >= 0 {
			break // all calls succeeded
		}
		if err != nil {
			failed++
			if !errors.Is(err, raftlog.ErrStorage) || !errors.Is(err, syscall.EIO) {
				t.Errorf("call %d: %v, want ErrStorage with its cause", n, err)
			}
		}
		if err := open(OSFS()); err != nil {
			t.Fatalf("after an error of call %d: %v", n, err)
		}
	}
	t.Logf("%d errors", failed)
	if failed < 10 {
		t.Errorf("only %d calls matter", failed)
	}
}
