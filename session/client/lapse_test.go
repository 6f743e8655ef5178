package client

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/lockfsm"
)

// TestAHoldThatLapsesStaysForItsDelay checks that the lock of a lapsed hold stays taken for its
// delay, because code may still run under the hold.
func TestAHoldThatLapsesStaysForItsDelay(t *testing.T) {
	const me, other = 100, 101
	for name, c := range map[string]struct {
		terms Terms
		ends  func(*Hold)
		why   string
	}{
		"overdue": {Terms{Delay: time.Minute, Longest: time.Second},
			func(*Hold) { time.Sleep(time.Second) }, "held for 1s"},
		"overdue, no delay": {Terms{Longest: time.Second}, func(*Hold) { time.Sleep(time.Second) }, "held for 1s"},
		"idle": {Terms{Delay: time.Minute, Idle: time.Second},
			func(*Hold) { time.Sleep(time.Second) }, "not called Beat for 1s"},
		"idle, seen by Err": {Terms{Delay: time.Minute, Idle: time.Second}, func(h *Hold) {
			end := time.Now().Add(time.Second)
			for h.Err() == nil {
				time.Sleep(time.Until(end))
			}
		}, "not called Beat for 1s"},
		"holder gone": {Terms{Delay: time.Minute}, func(h *Hold) { _ = h.Lapse("its client died") },
			"its client died"},
		"holder gone, no delay": {Terms{}, func(h *Hold) { _ = h.Lapse("its client died") }, "its client died"},
		"a long reason": {Terms{}, func(h *Hold) { _ = h.Lapse("-" + strings.Repeat("é", lockfsm.MaxValueBytes)) },
			"-" + strings.Repeat("é", lockfsm.MaxValueBytes/2-1)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, nodeidtest.ID(1))
				defer w.close()
				w.elect(nodeidtest.ID(1))
				h, err := w.take(nodeidtest.ID(me), c.terms)
				if err != nil {
					t.Fatal(err)
				}
				c.ends(h)
				start := time.Now()
				if h.Err() == nil {
					t.Fatal("it is held still")
				}
				_ = w.lock(nodeidtest.ID(other), "x").Release(t.Context())
				if waited := time.Since(start); waited < c.terms.Delay || waited > c.terms.Delay+time.Second {
					t.Errorf("free after %v, want %v", waited, c.terms.Delay)
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				ends := w.machine.Ends()
				if len(ends) == 0 || ends[0].Cause != lockfsm.Expired || ends[0].How == nil ||
					!strings.Contains(string(ends[0].How.Reason), c.why) || !utf8.Valid(ends[0].How.Reason) {
					t.Errorf("the ends are %+v", ends)
				}
			})
		})
	}
}

// TestAPassThatLapsesIsInTheAuditLog checks that the end of a pass is recorded with the token of
// the pass, also if the stay is given back at the same moment, and that the client otherwise keeps
// the lock.
func TestAPassThatLapsesIsInTheAuditLog(t *testing.T) {
	keeping(t, func(w *world) {
		w.kept(kept100, "x")
		ends := func() []lockfsm.Event {
			synctest.Wait()
			time.Sleep(time.Second / 4)
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.machine.Ends()
		}
		lapses := func(h *Hold, count int) {
			t.Helper()
			if err := h.Lapse("its client died"); err != nil || h.Err() != ErrReleased {
				t.Fatal(err, h.Err())
			}
			_ = h.Lapse("again")
			all := ends()
			if len(all) != count {
				t.Fatalf("%d ends, want %d: %+v", len(all), count, all)
			}
			e := all[count-1]
			if e.What != lockfsm.Ended || e.Cause != lockfsm.Expired || e.Key != "x" || e.Token != h.Token() ||
				e.Session != w.clients[kept100].Status().Session || e.How == nil || string(e.How.Reason) != "its client died" {
				t.Fatalf("%+v of token %d", e, h.Token())
			}
		}
		h := w.sticky(kept100, "x")
		first := h.Token()
		lapses(h, 1)
		if h = w.sticky(kept100, "x"); h.Token() != first+1 {
			t.Fatalf("token %d after %d, although the client keeps the lock", h.Token(), first)
		}
		var order servedOrder
		w.queue(kept101, "x", "other", &order)
		time.Sleep(time.Second / 4)
		lapses(h, 2)
		order.want(t, "other")
		w.unlock(w.sticky(kept100, "x"))
		if all := ends(); len(all) != 2 {
			t.Errorf("an unlock is in the log: %+v", all)
		}
	})
}
