package mortisegocron

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

// Three schedulers, whose clocks differ, run a job that ends at once. In two seconds each tick is
// run once.
func TestEachTickIsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap = 200 * time.Millisecond
		s := newSchedulers(t, options{gap: gap, clocks: []time.Duration{0, 70 * time.Millisecond, -90 * time.Millisecond}})
		begin := time.Now().Round(gap)
		time.Sleep(2 * time.Second)
		if errs := s.stop(); len(errs) > 0 {
			t.Errorf("not decided: %v", errs)
		}
		if ticks := s.runs.repeated(); len(ticks) > 0 {
			t.Errorf("run more than once: %v", ticks)
		}
		if ticks := s.runs.missing(begin, begin.Add(2*time.Second-gap), gap); len(ticks) > 0 {
			t.Errorf("not run: %v, of %v", ticks, s.runs.count)
		}
	})
}

// The clocks differ by more than the time between two ticks.
func TestClocksMayDifferByManyTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap = 5 * time.Second
		s := newSchedulers(t, options{gap: gap, clocks: []time.Duration{0, 8 * gap, -gap - gap/2}})
		begin := time.Now().Round(gap)
		time.Sleep(40 * gap)
		if errs := s.stop(); len(errs) > 0 {
			t.Errorf("not decided: %v", errs)
		}
		if ticks := s.runs.repeated(); len(ticks) > 0 {
			t.Errorf("run more than once: %v", ticks)
		}
		if ticks := s.runs.missing(begin.Add(15*gap), begin.Add(40*gap), gap); len(ticks) > 0 {
			t.Errorf("not run: %v", ticks)
		}
	})
}

// An adapter that holds the lock only during the run fails the same test, so the test sees the
// fault.
func TestANaiveAdapterRepeatsTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSchedulers(t, options{gap: 200 * time.Millisecond, naive: true,
			clocks: []time.Duration{0, 70 * time.Millisecond, -90 * time.Millisecond}})
		time.Sleep(2 * time.Second)
		s.stop()
		if ticks := s.runs.repeated(); len(ticks) < 5 {
			t.Errorf("run more than once: only %v", ticks)
		}
	})
}

// The instance that runs the job is killed during the run. Its lock stays taken until its session
// expires. Then the others run every tick, and no tick was run twice.
func TestTheRunningInstanceIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gap = 200 * time.Millisecond
		began, kill := make(chan int, 1), make(chan struct{})
		var once sync.Once
		s := newSchedulers(t, options{gap: gap, clocks: []time.Duration{0, 70 * time.Millisecond, -90 * time.Millisecond},
			work: func(_ *schedulers, i int) {
				once.Do(func() {
					began <- i
					<-kill
				})
			}})
		victim := <-began
		s.cluster.Kill(victim)
		close(kill)
		if err := s.all[victim].Shutdown(); err != nil {
			t.Error(err)
		}
		s.all = append(s.all[:victim:victim], s.all[victim+1:]...)
		time.Sleep(5 * time.Second) // longer than the TTL of 2 s and an election
		settled := time.Now().Round(gap).Add(gap)
		time.Sleep(2 * time.Second)
		for _, err := range s.stop() {
			t.Log(err)
		}
		if ticks := s.runs.repeated(); len(ticks) > 0 {
			t.Errorf("run more than once: %v", ticks)
		}
		if ticks := s.runs.missing(settled, settled.Add(2*time.Second-2*gap), gap); len(ticks) > 0 {
			t.Errorf("not run after the failover: %v", ticks)
		}
	})
}

// A job that runs longer than its period does not overlap with itself, and its lock is known.
func TestRunsDoNotOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tokens []mortise.Token
		var enough atomic.Bool // gocron spins while it waits for a job at its end, which stops fake time
		s := newSchedulers(t, options{gap: time.Second, clocks: []time.Duration{0, 100 * time.Millisecond,
			-100 * time.Millisecond},
			work: func(s *schedulers, i int) {
				if enough.Load() {
					return
				}
				lock := s.lockers[i].Held("job")
				mu.Lock()
				tokens = append(tokens, lock.Token())
				mu.Unlock()
				time.Sleep(2500 * time.Millisecond)
				if err := lock.Err(); err != nil {
					t.Error(err)
				}
			}})
		time.Sleep(20 * time.Second)
		enough.Store(true)
		time.Sleep(3 * time.Second)
		for _, err := range s.stop() {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if s.runs.most != 1 || len(tokens) < 5 {
			t.Errorf("%d runs at a time, and %d runs", s.runs.most, len(tokens))
		}
		for i := 1; i < len(tokens); i++ {
			if tokens[i] <= tokens[i-1] {
				t.Errorf("tokens %v do not rise", tokens)
			}
		}
		for _, l := range s.lockers {
			if l.Held("job") != nil {
				t.Error("a lock is left")
			}
		}
	})
}
