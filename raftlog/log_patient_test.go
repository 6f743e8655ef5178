package raftlog

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// A deferrable batch goes with the next batch that is not, or alone after its own Patience: the
// reminder of an earlier one does not count.
func TestPatienceIsEachBatchsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 1, func(c *Config) {
			c.Patient = func(waiting []byte, _ bool) bool { return !bytes.Contains(waiting, []byte("!")) }
		})
		l, app := p.logs[1], p.apps[1]
		l.Campaign()
		synctest.Wait()
		time.Sleep(Patience / 2) // so that no tick coincides
		began := time.Now()
		for _, step := range []struct {
			at      time.Duration
			propose string
			applied string
			entries int
		}{
			{0, "a", "", 0},
			{Patience / 2, "!", "a!", 1},
			{Patience - 1, "b", "a!", 1},
			{Patience, "", "a!", 1}, // the Patience of a would be over
			{2*Patience - 1, "", "a!", 1},
			{2 * Patience, "", "a!b", 2},
			{3 * Patience, "c", "a!b", 2},
			{4*Patience - 1, "d", "a!b", 2}, // it joins c, and the Patience of c counts
			{4 * Patience, "", "a!bcd", 3},
		} {
			time.Sleep(step.at - time.Since(began))
			synctest.Wait()
			if step.propose != "" {
				l.Propose(2, []byte(step.propose))
				synctest.Wait()
			}
			app.view(func(r *recorder) {
				if r.text != step.applied || r.entries != step.entries {
					t.Errorf("after %v: %q in %d entries, want %q in %d", step.at, r.text, r.entries, step.applied,
						step.entries)
				}
			})
		}
		if took := time.Since(began) + Patience/2; took >= l.cfg.Tick {
			t.Errorf("a tick passed meanwhile: %v", took)
		}
	})
}
