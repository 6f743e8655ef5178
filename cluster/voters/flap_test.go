package voters

import (
	"fmt"
	"testing"
	"time"
)

func (w *world) run(d time.Duration) {
	for end := w.now + d; w.now < end; {
		w.step()
	}
}

// TestFlapping runs for five minutes. In this time, one or two instances disappear and return, in
// all ways that make a replica dead. The number of changes is bounded. A voter that was replaced
// does not get its vote back just because it returns. An instance that was lost three times gets
// no replica if there are enough other instances. If there are not enough, each loss costs three
// changes.
func TestFlapping(t *testing.T) {
	for _, c := range []struct {
		n, flappers int
		away, back  time.Duration
		kill        bool
		most        int
	}{
		// three changes for each loss, since the third instance gets a vote whenever it is present
		{3, 1, 5500 * time.Millisecond, 5 * time.Second, false, 90},
		{4, 1, 5500 * time.Millisecond, 5 * time.Second, false, 14},
		{4, 2, 5500 * time.Millisecond, 5 * time.Second, false, 60},
		{5, 2, 5500 * time.Millisecond, 3 * time.Second, false, 20},
		{3, 1, 2 * time.Second, 5 * time.Second, true, 130},
		{4, 1, time.Second, 5 * time.Second, true, 15},
		{3, 1, 4 * time.Second, time.Second, false, 0}, // its silence never reaches the limit
		{4, 1, 4 * time.Second, time.Second, false, 0},
	} {
		worst := 0
		for seed := range uint64(4) {
			w := newWorld(seed, c.n, Settings{Voters: 3}, []string{"a", "b", "c"})
			w.mute = true
			w.run(20 * time.Second)
			w.changes, w.trace = 0, nil
			for until := w.now + 5*time.Minute; w.now < until; {
				for i := range c.flappers {
					w.flap(fmt.Sprint("n", 1+i), c.away, c.kill)
					w.run(c.back / time.Duration(c.flappers))
				}
			}
			if w.changes > c.most || w.fault != "" || w.leader == 0 {
				t.Fatalf("seed %d: %+v: %d changes, leader %d, %s\n%s", seed, c, w.changes, w.leader, w.fault, w.dump())
			}
			worst = max(worst, w.changes)
		}
		t.Logf("%+v: at most %d changes", c, worst)
	}
}

// TestFlappingUncounted checks that each loss costs only a few changes even if losses are not
// counted.
func TestFlappingUncounted(t *testing.T) {
	for seed := range uint64(4) {
		w := newWorld(seed, 3+int(seed), Settings{Voters: 3}, []string{"a", "b", "c"})
		w.uncounted = true
		w.run(20 * time.Second)
		w.changes, w.trace = 0, nil
		losses := 0
		for until := w.now + 5*time.Minute; w.now < until; losses++ {
			w.flap("n1", 5500*time.Millisecond, seed%2 == 0)
			w.run(5 * time.Second)
		}
		if t.Logf("%d changes for %d losses", w.changes, losses); w.changes > 3*losses || w.fault != "" {
			t.Fatalf("seed %d: %d changes for %d losses, %s\n%s", seed, w.changes, losses, w.fault, w.dump())
		}
	}
}

func (w *world) flap(name string, away time.Duration, kill bool) {
	for _, p := range w.living() {
		if p.name != name {
			continue
		}
		if kill {
			w.crash(p)
			w.run(away)
			w.start(name, p.zone)
			return
		}
		p.cut = true
		w.run(away)
		p.cut = false
		return
	}
}

// TestRollingRestart restarts every instance in turn, with and without Leave. Each restart begins
// when Ready reports that the previous instance is back and no change is due. The majority is never
// lost.
func TestRollingRestart(t *testing.T) {
	for seed := range uint64(60) {
		n, leave := []int{3, 5, 9}[seed%3], seed/3%2 == 0
		w := newWorld(seed, n, Settings{Voters: []int{3, 5}[seed/6%2]}, []string{"a", "b", "c"})
		w.careful = true
		for i := range n {
			w.run(time.Second)
			for k := 0; Explain(w.view()).Due; k++ {
				if w.step(); k > 300 {
					t.Fatalf("seed %d: never ready\n%s", seed, w.dump())
				}
			}
			p := w.procs[i]
			if p.leaving = w.now; leave {
				for k := 0; p.alive; k++ {
					if w.step(); k > 100 {
						t.Fatalf("seed %d: %s may not stop\n%s", seed, p.name, w.dump())
					}
				}
			} else {
				p.leaving = 0
				w.crash(p)
			}
			w.start(p.name, p.zone)
		}
		w.run(20 * time.Second)
		if w.fault != "" || w.leader == 0 || Explain(w.view()).Due ||
			len(w.config.Voters) != odd(min(n, w.settings.Voters)) {
			t.Fatalf("seed %d: %s, %+v\n%s", seed, w.fault, w.config, w.dump())
		}
	}
}
