package storage

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/raftlog"
)

// A method that hangs while it holds the mutex must not block Close forever.
func TestDirCloseDoesNotWaitForAHungMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDir(t, t.TempDir()+"/d")
		d.mu.lock() // Put holds it while it writes
		began := time.Now()
		for range 2 {
			refused(t, d.Close(), raftlog.ErrHung, d.cfg.Path)
		}
		if took := time.Since(began); took != 2*maxCloseWait {
			t.Errorf("it took %v", took)
		}
		d.mu.unlock()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestFakeTimeGoesOnBehindAHungDisk checks that a Prepare and a Save which wait behind a hung Save
// wait at a channel. Whole nodes in fake time would otherwise stop until the hang ends, which is
// never.
func TestFakeTimeGoesOnBehindAHungDisk(t *testing.T) {
	defer time.AfterFunc(time.Minute, func() { panic("fake time stands still behind a hung disk") }).Stop()
	path := t.TempDir() + "/d"
	synctest.Test(t, func(t *testing.T) {
		fs := stuckFS{OSFS(), make(chan struct{}), make(chan struct{})}
		d, err := Open(Config{Path: path, Files: fs, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Log(7, 1)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 3)
		go func() { done <- s.Save(raftlog.Batch{Identity: &raftlog.Identity{Group: 7, ID: 1}}) }()
		<-fs.stuck
		go func() { done <- s.Prepare(t.Context(), testSnapshot(1, 1, 100)) }()
		go func() { done <- s.Save(raftlog.Batch{}) }()
		began := time.Now()
		time.Sleep(time.Second)
		if took := time.Since(began); took != time.Second || len(done) != 0 {
			t.Errorf("%v have passed, and %d calls have returned beside the hang", took, len(done))
		}
		close(fs.free)
		if err := errors.Join(<-done, <-done, <-done, s.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
}
