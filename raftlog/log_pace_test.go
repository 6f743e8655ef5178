package raftlog

import (
	"testing"
	"testing/synctest"
	"time"
)

// While the owner has no other work, a timer causes the steps of a snapshot.
func TestASnapshotAtRestHasItsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const runaway = 1 << 20
		p := startParty(t, 3, func(c *Config) {
			r := c.Applier.(*recorder)
			c.SnapshotBytes, r.steps = 5000, 1<<30
			r.onStep = func(int) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.enough = r.stepped > runaway
			}
		})
		l, app := p.logs[1], p.apps[1]
		l.Campaign()
		synctest.Wait()
		term := l.Status().Term
		batchOf(l)
		synctest.Wait()
		began, before := time.Now(), 0
		app.view(func(r *recorder) { before = r.stepped })
		if before > 20 {
			t.Fatalf("%d steps were done in no time", before)
		}
		for _, at := range []time.Duration{pace / 2, 10 * pace, 100 * pace, 5000 * pace} {
			time.Sleep(at - time.Since(began))
			synctest.Wait()
			most := int(at/pace)*restSteps + 3*int(at/l.cfg.Tick) // plus the turns of heartbeats
			app.view(func(r *recorder) {
				if done := r.stepped - before; done > most || done < most/2 {
					t.Errorf("after %v: %d steps, want at most %d and at least half of that", at, done, most)
				}
			})
		}
		if st := l.Status(); st.Term != term || !st.Leading || !st.Taking {
			t.Errorf("the leader of term %d meanwhile: %+v", term, st)
		}
	})
}
