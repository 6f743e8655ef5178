package raftlog

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"
)

// A deferrable batch is proposed alone only after it has itself waited for MaxDeferral, and not
// when the timer of an earlier batch fires.
func TestEachBatchHasItsOwnDeferral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := startParty(t, 1, func(c *Config) {
			c.Deferrable = func(waiting []byte, _ bool) bool { return !bytes.Contains(waiting, []byte("!")) }
		})
		l, app := p.logs[1], p.apps[1]
		l.Campaign()
		synctest.Wait()
		time.Sleep(MaxDeferral / 2) // so that no tick is due at the same time
		began := time.Now()
		for _, step := range []struct {
			at      time.Duration
			propose string
			applied string
			entries int
		}{
			{0, "a", "", 0},
			{MaxDeferral / 2, "!", "a!", 1},
			{MaxDeferral - 1, "b", "a!", 1},
			{MaxDeferral, "", "a!", 1}, // the timer fires; it was started for batch "a"
			{2*MaxDeferral - 1, "", "a!", 1},
			{2 * MaxDeferral, "", "a!b", 2},
			{3 * MaxDeferral, "c", "a!b", 2},
			{4*MaxDeferral - 1, "d", "a!b", 2}, // batch "d" is proposed when the MaxDeferral of batch "c" ends
			{4 * MaxDeferral, "", "a!bcd", 3},
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
		if took := time.Since(began) + MaxDeferral/2; took >= l.cfg.Tick {
			t.Errorf("a tick passed meanwhile: %v", took)
		}
	})
}
