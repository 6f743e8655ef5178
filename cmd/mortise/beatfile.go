package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// beatName is the variable with the path of a command's beatFile.
const beatName = prefix + "_BEAT"

// beatFile is the file by which the command of run shows that its work moves: after each touch, run
// beats for the lock. Its directory is private, so that no other user can touch it or replace it.
//
// Touches that have the same time count as one. That loses at most the resolution of the file
// system's clock. A file that is missing gets no touch until a process creates it again.
type beatFile struct {
	path  string
	outer string        // the file of the run that this run is a command of, or ""
	every time.Duration // between two looks
	seen  time.Time     // when the file was last touched; owned by the goroutine of watch
	gone  atomic.Bool   // at the last look the file was missing

	watching sync.WaitGroup
	stop     context.CancelFunc
}

// newBeatFile creates the file for a lock with this longest time without a beat. The caller calls
// remove later.
func newBeatFile(environ []string, idle time.Duration) (*beatFile, error) {
	dir, err := os.MkdirTemp("", "mortise-run-")
	if err != nil {
		return nil, fmt.Errorf("the command has no file to touch for -max-idle: %w; set TMPDIR to a directory that "+
			"can be written", err)
	}
	b := &beatFile{every: max(idle/4, 1), stop: func() {}}
	for _, pair := range environ {
		if path, is := strings.CutPrefix(pair, beatName+"="); is {
			b.outer = path
		}
	}
	if dir, err = filepath.Abs(dir); err == nil { // the command may change its directory
		b.path = filepath.Join(dir, "beat")
		err = os.WriteFile(b.path, nil, 0o600)
	}
	if err == nil {
		b.seen, err = touchedAt(b.path)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return b, nil
}

func touchedAt(path string) (time.Time, error) {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

// watch calls beat after each touch, until stop is called. A file system that hangs stops only the
// goroutine that watch starts.
func (b *beatFile) watch(beat func()) {
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	b.watching.Go(func() {
		look := time.NewTicker(b.every)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
				if b.touched() {
					beat()
				}
			}
		}
	})
}

// touched reports whether the file was touched since the last look, and then touches the outer one:
// the work of this command is part of the work of the outer command.
func (b *beatFile) touched() bool {
	at, err := touchedAt(b.path)
	b.gone.Store(os.IsNotExist(err))
	if err != nil || at.Equal(b.seen) {
		return false
	}
	b.seen = at
	if b.outer != "" {
		now := time.Now()
		_ = os.Chtimes(b.outer, now, now) // fails if the outer run has ended
	}
	return true
}

// remove ends watch, and removes the file.
func (b *beatFile) remove() error {
	b.stop()
	b.watching.Wait()
	return os.RemoveAll(filepath.Dir(b.path))
}
