package client

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// A lease that ends while the process is stopped is reported with the time for which it did not
// run. When only the function Watch was slow, there is no such time.
func TestALossKnowsThatTheProcessDidNotRun(t *testing.T) {
	for name, c := range map[string]struct {
		stop, slow time.Duration
		least      time.Duration
	}{
		"stopped":      {stop: 2 * worldTTL, least: worldTTL},
		"no processor": {stop: worldTTL + worldTTL/3, least: worldTTL / 3},
		"a slow Watch": {slow: 2 * worldTTL},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, nodeidtest.ID(1))
				defer w.close()
				leaping := w.leap()
				w.elect(nodeidtest.ID(1))
				h := w.lock(nodeidtest.ID(100), "x")
				synctest.Wait()
				var mu sync.Mutex
				late, losses := time.Duration(-1), 0
				w.clients[nodeidtest.ID(100)].config.Watch = func(n *News) {
					mu.Lock()
					defer mu.Unlock()
					if n.Before.Lease != Lost && n.After.Lease == Lost {
						late, losses = max(late, n.After.Late), losses+1
					}
					if slow := c.slow; slow > 0 {
						c.slow = 0
						time.Sleep(slow)
					}
				}
				// The input orders the goroutine's next turn after the assignment above.
				w.clients[nodeidtest.ID(100)].SetTargets([]nodeid.Endpoint{{ID: nodeidtest.ID(1)}})
				time.Sleep(worldTTL/2 + time.Millisecond) // between two renewals
				leaping.leap.Advance(c.stop)
				time.Sleep(3 * worldTTL)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if h.Err() == nil || losses == 0 || late < c.least || c.least == 0 && late > worldTTL/10 {
					t.Errorf("%d losses (%v), late by %v, want at least %v", losses, h.Err(), late, c.least)
				}
			})
		})
	}
}

type setClock struct{ now clock.Time }

func (c *setClock) Now() clock.Time { return c.now }

// TestATimerIsNotLateWhileAWatcherRuns checks that the time in which Config.Watch runs, on the
// client's goroutine, does not count as a time in which the machine let the goroutine wait.
func TestATimerIsNotLateWhileAWatcherRuns(t *testing.T) {
	at := &setClock{now: clock.Time(time.Hour)}
	c := &Client{core: NewCore(at.now, time.Second), config: Config{Clock: at, TTL: time.Second,
		Random: func([]byte) {}, Watch: func(*News) { at.now = at.now.Add(2 * time.Second) }}}
	c.due = at.now // the timer is due when the watcher begins
	c.tell(Status{}, Status{Phase: Attached})
	if c.told != at.now {
		t.Fatalf("the watcher returned at %v, and its time counts until %v", at.now, c.told)
	}
	c.turn()
	if c.late != 0 {
		t.Errorf("the goroutine was late by %v", c.late)
	}
	c.due = at.now
	at.now = at.now.Add(time.Second)
	c.turn()
	if c.late != time.Second {
		t.Errorf("the goroutine was late by %v, want a second", c.late)
	}
}
