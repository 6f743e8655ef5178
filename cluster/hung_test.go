package cluster

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCloseDoesNotWaitForAHungDisk checks that Close ends everything else and returns while a
// Save hangs. When the disk responds again, nothing more is sent or done.
func TestCloseDoesNotWaitForAHungDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.stop()
		var disks []*disk
		for i := range 3 {
			d := newDisk()
			disks = append(disks, d)
			f.start(d.durable(f.config(i, 3)))
		}
		for _, d := range disks {
			d.mu.Lock()
			d.stuck = true
			d.mu.Unlock()
		}
		f.raft(5 * time.Second) // each instance that has to store a promise hangs
		hung := 0
		for _, n := range f.nodes {
			began := time.Now()
			closed := make(chan error, 1)
			go func() { closed <- n.Close() }()
			select {
			case err := <-closed:
				if errors.Is(err, ErrHung) {
					hung++
				} else if err != nil {
					t.Error(err)
				}
			case <-time.After(maxCloseWait + 3*time.Second):
				t.Errorf("Close of %s has not returned after %v", n.cfg.Name, time.Since(began))
			}
		}
		if hung == 0 {
			t.Error("nothing hung: the test proves nothing")
		}
		for _, d := range disks {
			d.mu.Lock()
			d.stuck = false
			d.mu.Unlock()
		}
		time.Sleep(time.Minute) // fake time
		for i, n := range f.nodes {
			select {
			case <-n.done:
			default:
				t.Errorf("%s: its goroutine outlives the call that hung", n.cfg.Name)
			}
			if got := n.calls(); strings.Contains(got, "bound") {
				t.Errorf("the host of %s was told %q after Close", n.cfg.Name, got)
			}
			if saves := disks[i].saves; saves > 2 { // one Save by Start, and the Save that hung
				t.Errorf("%s has saved %d times", n.cfg.Name, saves)
			}
		}
	})
}
