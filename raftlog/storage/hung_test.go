package storage

import (
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
