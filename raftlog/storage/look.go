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

// View is what Dir.Look found.
type View struct {
	FreeBytes uint64 // what this process may still write to the file system
	FreeKnown bool   // the system reports it
}

// Look compares the directory with the one that was opened, and reads how much room is left. With
// write it also writes one byte and syncs it, so that a disk that is broken is noticed while
// nothing else is written. The error wraps ErrLost if the directory was removed or another one is
// in its place: what is written from then on is gone with the process. It wraps raftlog.ErrHung if
// the disk does not answer within the limit, and raftlog.ErrStorage if the write fails. Look takes
// no lock, so it answers while Put or Log waits for the disk. Its errors end no log: they are about
// another file.
func (d *Dir) Look(within time.Duration, write bool) (View, error) {
	hung := fmt.Errorf("%w: %s has not answered for %v", raftlog.ErrHung, d.cfg.Path, within)
	if !d.looking.CompareAndSwap(false, true) {
		return View{}, hung // an earlier look has not returned
	}
	type result struct {
		view View
		err  error
	}
	done := make(chan result, 1)
	go func() { // a system call that hangs cannot be ended: nothing waits for it, and it ends by itself
		var r result
		r.err = d.stillThere()
		r.view.FreeBytes, r.view.FreeKnown = d.cfg.Files.Free(d.cfg.Path)
		if r.err == nil && write {
			r.err = d.tryWrite()
		}
		d.looking.Store(false) // before the answer: the caller may look again at once
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

// tryWrite writes the probe file in place, as the log writes its segments: that needs no more room
// once the file is there, so a disk that is only full does not fail it.
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

// identify keeps what the lock file is known by: its device and inode, or what the system has in
// their place. The file stays open, so no other file can get the same inode.
func (d *Dir) identify() error {
	path, err := filepath.Abs(filepath.Join(d.cfg.Path, lockName))
	if err != nil {
		return err
	}
	d.lockPath = path
	if d.identity, err = os.Stat(path); err != nil {
		return err
	}
	os.SameFile(d.identity, d.identity) // Windows reads the number of the file only now
	return nil
}

// stillThere reports whether the path still leads to the lock file that was opened. An error that
// says nothing about that, as of a disk that cannot be read, is left to the writes.
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
