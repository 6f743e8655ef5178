package e2e

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// turnClock counts how often it is read. Each goroutine of a node whose decisions depend on time
// reads the clock when it is woken.
type turnClock struct {
	clock.Clock
	reads atomic.Int64
}

func (c *turnClock) Now() clock.Time {
	c.reads.Add(1)
	return c.Clock.Now()
}

// TestANodeOnItsOwnRests checks that the goroutines of a node on its own are woken at most a few
// times a second. It has no follower that needs heartbeats. 106 readings of the clock per second
// cost 0.7 % of a core.
func TestANodeOnItsOwnRests(t *testing.T) {
	slow.UnderRace(t)
	for name, dir := range map[string]bool{"in memory": false, "with Dir": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				e, counting := realWorld(), &turnClock{Clock: clock.Monotonic()}
				e.Clock = counting
				c := mortise.Config{Grace: -1}
				if dir {
					c.Dir = t.TempDir() + "/d"
				}
				n, err := start(t.Context(), c, e)
				if err != nil {
					t.Fatal(err)
				}
				defer n.Close()
				l, err := n.Lock(context.Background(), "k")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				before := counting.reads.Load()
				const rest = 10 * time.Minute
				time.Sleep(rest)
				reads := float64(counting.reads.Load()-before) / rest.Seconds()
				t.Logf("%.2f readings of the clock a second", reads)
				most := 10.0
				if dir {
					most = 11 // includes a check of the directory every two seconds
				}
				if reads > most {
					t.Errorf("the clock is read %.1f times a second by a node at rest, want at most %.0f", reads, most)
				}
				if err := l.Err(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
