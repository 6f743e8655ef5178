package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/mortise-lock/mortise/raftlog"
)

const probeName = "probe"

// View is the result of Dir.Look.
type View struct {
	FreeBytes uint64 // number of bytes that this process may still write to the file system
	FreeKnown bool   // FreeBytes is known
}

// Look checks that the path still leads to the opened directory, and reads the free space. If write
// is set, it also writes and syncs one byte, so that a broken disk is detected even if nothing else
// is written. Its errors do not end the log.
//
// The error wraps ErrLost if the directory was removed or replaced, raftlog.ErrHung if the disk
// does not answer within the limit, and raftlog.ErrStorage if the write fails. Look does not wait
// for Put or Log.
func (d *Dir) Look(within time.Duration, write bool) (View, error) {
	hung := fmt.Errorf("%w: %s has not answered for %v", raftlog.ErrHung, d.cfg.Path, within)
	if !d.looking.CompareAndSwap(false, true) {
		return View{}, hung // an earlier call has not returned
	}
	type result struct {
		view View
		err  error
	}
	done := make(chan result, 1)
	go func() { // Look does not wait for the goroutine, because a hanging system call cannot be ended
		var r result
		r.err = d.stillThere()
		r.view.FreeBytes, r.view.FreeKnown = d.cfg.Files.Free(d.cfg.Path)
		if r.err == nil && write {
			r.err = d.tryWrite()
		}
		// Store before the send, because the caller may call Look again when it has the answer.
		d.looking.Store(false)
		done <- r
	}()
	limit := time.NewTimer(within)
	defer limit.Stop()
	select {
	case r := <-done:
		return r.view, r.err
	case <-limit.C:
		return View{}, hung
	}
}

// tryWrite overwrites the probe file, or creates it. An overwrite needs no space, so it succeeds on
// a full disk.
func (d *Dir) tryWrite() error {
	path := filepath.Join(d.cfg.Path, probeName)
	f, err := d.cfg.Files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = d.cfg.Files.Create(path)
	}
	if err == nil {
		_, err = f.WriteAt([]byte{0}, 0)
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("%w: writing %s: %w", raftlog.ErrStorage, path, err)
	}
	return nil
}

// stillThere returns an error if the path no longer leads to the lock file that was opened. It
// ignores other errors, which the next write will return.
func (d *Dir) stillThere() error {
	now, err := os.Stat(d.lockPath)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s is gone", ErrLost, d.lockPath)
	case err == nil && d.numbered && !os.SameFile(now, d.identity):
		return fmt.Errorf("%w: %s is another file now", ErrLost, d.lockPath)
	}
	return nil
}
