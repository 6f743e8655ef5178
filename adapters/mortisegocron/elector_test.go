package mortisegocron

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/mortise-lock/mortise/election"
	"github.com/mortise-lock/mortise/mortisetest"
)

// The leader runs all ticks until it is killed, and then another instance does. At no moment does
// more than one instance lead.
func TestTheLeaderRunsTheJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var mu sync.Mutex
		ran := map[int]int{}
		electors, schedulers := make([]*Elector, 3), make([]gocron.Scheduler, 3)
		for i := range 3 {
			electors[i] = NewElector(cluster.Node(i), "scheduler", election.Options{})
			running.Go(func() { _ = electors[i].Run(ctx, "") })
			var err error
			if schedulers[i], err = gocron.NewScheduler(gocron.WithDistributedElector(electors[i])); err != nil {
				t.Fatal(err)
			}
			if _, err = schedulers[i].NewJob(gocron.DurationJob(time.Second), gocron.NewTask(func() {
				mu.Lock()
				ran[i]++
				mu.Unlock()
				if electors[i].Leadership().Token() == 0 {
					t.Error("no token")
				}
			})); err != nil {
				t.Fatal(err)
			}
		}
		leader := func() (leads int) {
			leads = -1
			for i, e := range electors {
				if e.IsLeader(ctx) == nil {
					if leads >= 0 {
						t.Fatalf("%d and %d lead", leads, i)
					}
					leads = i
				}
			}
			return leads
		}
		cluster.Until("an instance leads", func() bool { return leader() >= 0 })
		first := leader()
		for _, s := range schedulers {
			s.Start()
		}
		time.Sleep(10*time.Second + 500*time.Millisecond)
		mu.Lock()
		if len(ran) != 1 || ran[first] < 9 {
			t.Errorf("instance %d leads, runs: %v", first, ran)
		}
		clear(ran)
		mu.Unlock()

		cluster.Kill(first)
		cluster.Until("another instance leads", func() bool { return leader() >= 0 })
		next := leader()
		time.Sleep(10 * time.Second)
		mu.Lock()
		if next == first || ran[next] < 9 || len(ran) > 1 {
			t.Errorf("after %d instance %d leads, runs: %v", first, next, ran)
		}
		mu.Unlock()
		for _, s := range schedulers {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
		}
		cancel()
		running.Wait()
		if err := electors[next].IsLeader(ctx); !errors.Is(err, ErrNotLeader) || electors[next].Leadership() != nil {
			t.Errorf("after the end of Run: %v", err)
		}
	})
}
