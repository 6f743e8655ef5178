package raftlog

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

type countingClock struct {
	clock.Clock
	reads atomic.Int64
}

func (c *countingClock) Now() clock.Time {
	c.reads.Add(1)
	return c.Clock.Now()
}

// The owner of a group's only replica must not be woken while it has no work.
func TestALoneLeaderAtRestIsNotWoken(t *testing.T) {
	for name, volatile := range map[string]bool{"in memory": true, "with a disk": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counting := &countingClock{Clock: clock.Monotonic()}
				p := startParty(t, 1, func(c *Config) {
					c.Clock = counting
					if !volatile {
						c.Store = &disk{MemoryStore: c.Store.(*MemoryStore)}
					}
				})
				l, app := p.logs[1], p.apps[1]
				l.Campaign()
				time.Sleep(time.Second)
				for round := range uint64(3) {
					before := counting.reads.Load()
					time.Sleep(time.Hour)
					if n := counting.reads.Load() - before; n > 0 {
						t.Fatalf("round %d: the owner was woken %d times in an hour of rest", round, n)
					}
					l.Propose(2, []byte("a"))
					l.Confirm(2, round)
					time.Sleep(time.Second)
					app.view(func(r *recorder) {
						if r.entries != int(round)+1 || len(r.confirmed) != int(round)+1 {
							t.Fatalf("round %d: %d entries, confirmed %v", round, r.entries, r.confirmed)
						}
					})
				}
			})
		})
	}
}

// The time of a rest must not count as silence of a learner that is added later.
func TestARestEndsWithTheSecondReplica(t *testing.T) {
	c := newCluster(t, 1, 1)
	l := c.elect()
	c.settle(5)
	if next := l.core.NextTick(); next != 0 {
		t.Fatalf("a lone leader with nothing to do is to be woken at %v, not at rest", next)
	}
	l.now = l.now.Add(time.Hour)
	l.core.Change(l.core.Role().Term, Change{Add: &Member{ID: 9}})
	c.settle(1)
	if l.core.NextTick() == 0 {
		t.Fatal("a leader with a learner is at rest: it sends no heartbeats")
	}
	l.core.Tick(l.now)
	if next := l.core.NextTick(); next != l.now.Add(testTick) {
		t.Fatalf("the next tick is due at %v, not one tick after %v", next, l.now)
	}
	for _, r := range l.core.Survey().Replicas {
		if r.SilentFor > testTick {
			t.Errorf("replica %x counts as silent for %v", r.ID, r.SilentFor)
		}
	}
}
