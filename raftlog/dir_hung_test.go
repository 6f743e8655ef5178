package raftlog

import (
	"testing"
	"testing/synctest"
	"time"
)

// A method of a Dir that waits for a disk which does not answer must not hold up Close: neither by the mutex at once nor behind the log.
func TestDirCloseDoesNotWaitForAHungMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mustDir(t, t.TempDir()+"/d")
		d.mu.lock() // as Put does while it writes
		began := time.Now()
		for range 2 {
			refused(t, d.Close(), ErrHung, d.cfg.Path)
		}
		if took := time.Since(began); took != 2*closeWaitMax {
			t.Errorf("it took %v", took)
		}
		d.mu.unlock()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A store whose Close hangs, because it writes for the last time.
func TestLogCloseDoesNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowClose{MemoryStore: newTestStore(t, 1, []uint64{1}), free: make(chan struct{})}
		p := &party{t: t, logs: map[uint64]*Log{}, apps: map[uint64]*recorder{}}
		l := p.start(1, store, nil)
		began := time.Now()
		refused(t, l.Close(), ErrHung, "not closed")
		if took := time.Since(began); took > closeWaitMax {
			t.Errorf("it took %v", took)
		}
		close(store.free)
	})
}

type slowClose struct {
	*MemoryStore
	free chan struct{}
}

func (s *slowClose) Close() error {
	<-s.free
	return nil
}
