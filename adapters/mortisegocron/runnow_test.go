package mortisegocron

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
)

// instances are schedulers with one job each, all beside one node.
type instances struct {
	mu      sync.Mutex
	runs    []time.Time
	refused []error
	jobs    []gocron.Job
	lockers []*Locker
}

func newInstances(t *testing.T, n int, every time.Duration, job gocron.JobDefinition) *instances {
	t.Helper()
	all, node := &instances{}, mortisetest.New(t, 1).Node(0)
	for range n {
		s, err := gocron.NewScheduler(gocron.WithLocation(time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		locker := NewLocker(node, tick.Every(every), Options{})
		j, err := s.NewJob(job, gocron.NewTask(func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			all.runs = append(all.runs, locker.Tick("report"))
		}), gocron.WithName("report"), gocron.WithDistributedJobLocker(locker),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
				all.mu.Lock()
				defer all.mu.Unlock()
				all.refused = append(all.refused, err)
			})))
		if err != nil {
			t.Fatal(err)
		}
		all.jobs, all.lockers = append(all.jobs, j), append(all.lockers, locker)
		s.Start()
		t.Cleanup(func() {
			if err := s.Shutdown(); err != nil {
				t.Error(err)
			}
		})
	}
	return all
}

// taken returns the ticks of the runs since the last call, and the errors other than ErrTaken.
func (all *instances) taken() (runs []time.Time, others []error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, err := range all.refused {
		if !errors.Is(err, ErrTaken) {
			others = append(others, err)
		}
	}
	runs = all.runs
	all.runs, all.refused = nil, nil
	return runs, others
}

// A job of each hour is started by hand, in one instance or in two at a time. It runs once, and the
// next scheduled run takes place.
func TestAManualRunTakesNoTick(t *testing.T) {
	for name, c := range map[string]struct {
		after []time.Duration // of RunNow after a tick
		in    int             // how many instances
	}{
		"none": {}, "after 20 min": {[]time.Duration{20 * time.Minute}, 1},
		"after 45 min":     {[]time.Duration{45 * time.Minute}, 1},
		"in two instances": {[]time.Duration{45 * time.Minute}, 2},
		"three":            {[]time.Duration{time.Minute, 20 * time.Minute, 55 * time.Minute}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := newInstances(t, 3, time.Hour, gocron.CronJob("0 * * * *", false))
				begin := time.Now().UTC().Truncate(time.Hour).Add(time.Hour)
				until := func(after time.Duration) { time.Sleep(time.Until(begin.Add(after))) }
				scheduled := func(at time.Duration) {
					t.Helper()
					until(at + 10*time.Second)
					if runs, errs := all.taken(); len(runs) != 1 || !runs[0].Equal(begin.Add(at)) || len(errs) > 0 {
						t.Errorf("the tick after %v: runs for %v, %v", at, runs, errs)
					}
				}
				scheduled(0)
				for _, after := range c.after {
					until(after)
					for i := range c.in {
						if err := all.jobs[i].RunNow(); err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(10 * time.Second)
					runs, errs := all.taken()
					if len(runs) != 1 || runs[0].Sub(begin.Add(after)).Abs() > time.Second || len(errs) > 0 {
						t.Errorf("RunNow after %v: runs for %v, %v", after, runs, errs)
					}
				}
				scheduled(time.Hour)
			})
		})
	}
}

// Jobs that a loop makes without names have one name, that of their function. gocron reports it.
func TestTwoJobsOfOneName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var refused []error
		s, err := gocron.NewScheduler(gocron.WithLocation(time.UTC), gocron.WithDistributedLocker(
			NewLocker(mortisetest.New(t, 1).Node(0), tick.Every(time.Minute), Options{})))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := s.NewJob(gocron.CronJob("* * * * *", false), gocron.NewTask(func() {}),
				gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
					mu.Lock()
					defer mu.Unlock()
					refused = append(refused, err)
				}))); err != nil {
				t.Fatal(err)
			}
		}
		s.Start()
		time.Sleep(time.Minute + time.Second)
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
		if len(refused) != 2 {
			t.Fatalf("%d are refused: %v", len(refused), refused)
		}
		for _, err := range refused {
			if text := err.Error(); !errors.Is(err, ErrSameName) || errors.Is(err, ErrTaken) ||
				!strings.Contains(text, "TestTwoJobsOfOneName") || !strings.Contains(text, "gocron.WithName") {
				t.Error(err)
			}
		}
	})
}

// A DurationJob of another period than the schedule is told that, and not that another scheduler
// has run it. At most two runs precede that in each instance.
func TestAJobOfAnotherPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newInstances(t, 1, time.Hour, gocron.DurationJob(10*time.Minute))
		time.Sleep(3*time.Hour + 30*time.Minute)
		runs, errs := all.taken()
		if len(runs) > 6 || len(errs) < 13 {
			t.Errorf("%d runs and %d errors", len(runs), len(errs))
		}
		for _, err := range errs {
			if text := err.Error(); !errors.Is(err, ErrOtherSchedule) || !strings.Contains(text, `"report"`) ||
				!strings.Contains(text, "every 10m0s") || !strings.Contains(text, "ticks are 1h0m0s apart") {
				t.Error(err)
			}
		}
	})
}

// A DurationJob with the period of the schedule and another phase in each instance runs at most
// once in each period, from the first one on.
func TestAJobOfAnotherPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := mortisetest.New(t, 1).Node(0)
		var mu sync.Mutex
		runs := map[time.Time]int{}
		for range 3 {
			time.Sleep(17 * time.Second)
			locker := NewLocker(node, tick.Every(time.Minute), Options{})
			s, err := gocron.NewScheduler()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(func() {
				mu.Lock()
				defer mu.Unlock()
				runs[locker.Tick("report")]++
			}), gocron.WithName("report"), gocron.WithDistributedJobLocker(locker)); err != nil {
				t.Fatal(err)
			}
			s.Start()
			defer func() { _ = s.Shutdown() }()
		}
		time.Sleep(20 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for at, n := range runs {
			if n != 1 || !at.Equal(at.Truncate(time.Minute)) {
				t.Errorf("%d runs for %v", n, at)
			}
		}
		if len(runs) < 19 {
			t.Errorf("%d runs in 20 min", len(runs))
		}
	})
}

// The lock is lost during a run. The job learns of it, and the next ticks are run.
func TestALossDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		ctx, l := t.Context(), NewLocker(c.Node(0), tick.Every(time.Minute), Options{})
		first, err := l.Lock(ctx, "report")
		if err != nil {
			t.Fatal(err)
		}
		held := l.Held("report")
		c.Lose(0)
		if !errors.Is(held.Err(), mortise.ErrLost) {
			t.Errorf("the job sees %v", held.Err())
		}
		c.Ready(0)
		time.Sleep(time.Minute)
		next, err := l.Lock(ctx, "report")
		if err != nil {
			t.Fatal(err)
		}
		if err := first.Unlock(ctx); !errors.Is(err, mortise.ErrLost) || l.Held("report") == nil {
			t.Errorf("unlock of the lost one: %v, the present run: %v", err, l.Held("report"))
		}
		if err := next.Unlock(ctx); err != nil {
			t.Error(err)
		}
	})
}

// A call of Lock that has given up, because an earlier run goes on or its context has ended, holds
// nothing later. Its error names the job and the tick once, and the cause once.
func TestACallThatHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.New(t, 3)
		ctx := t.Context()
		one := NewLocker(c.Node(0), tick.Every(time.Minute), Options{})
		two := NewLocker(c.Node(1), tick.Every(time.Minute), Options{})
		running, err := one.Lock(ctx, "report")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		for what, ask := range map[string]func() error{
			"an earlier run": func() error { _, err := two.Lock(ctx, "report"); return err },
			"its context": func() error {
				_, err := NewLocker(c.Node(2), tick.Every(2*time.Minute), Options{}).Lock(short, "report")
				return err
			},
		} {
			err := ask()
			if err == nil || errors.Is(err, ErrTaken) {
				t.Fatalf("%s: %v", what, err)
			}
			text := err.Error()
			if strings.Count(text, "mortisegocron: ") != 1 || strings.Count(text, `job "report"`) != 1 ||
				strings.Count(text, "deadline exceeded") != 1 {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := running.Unlock(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if info, err := c.Node(0).Peek(ctx, "gocron/report"); err != nil || info.Held > 0 {
			t.Errorf("a minute later %d hold the lock: %v", info.Held, err)
		}
	})
}
