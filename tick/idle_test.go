package tick_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/fakelock"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
)

// TestOnlyTheJobIsIdle runs ticks whose locks are held for much longer than MaxIdle: the job beats,
// the lock of the job is taken at first, and the lock of the tick is kept until T+Late+Skew. Each
// tick must run once and be reported without an error.
func TestOnlyTheJobIsIdle(t *testing.T) {
	slow.UnderRace(t)
	const idle, every = time.Second, 2 * time.Minute
	quick := func(context.Context) error { return nil }
	for name, c := range map[string]struct {
		job   func(ctx context.Context) error
		taken time.Duration // how long other code holds the lock of the job
		runs  time.Duration // when the tick runs, after T
	}{
		"the tick is kept":            {job: quick},
		"the lock of the job is held": {job: quick, taken: 15 * time.Second, runs: 15 * time.Second},
		"the job beats": {job: func(ctx context.Context) error {
			for range 20 {
				time.Sleep(idle * 9 / 10)
				mortise.Beat(ctx)
			}
			return ctx.Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := mortisetest.New(t, 2)
				at := time.Now().Truncate(every).Add(every)
				time.Sleep(time.Until(at.Add(-10 * time.Second)))
				ctx, stop := context.WithCancel(t.Context())
				runs, reports, ended := make(chan time.Duration, 10), make(chan error, 10), make(chan error, 2)
				for i := range 2 {
					job := tick.Job{Name: "report", Schedule: tick.Every(every), MaxIdle: idle,
						Late: 20 * time.Second, Skew: 20 * time.Second,
						Report: func(_ tick.Tick, err error) { reports <- err },
						Run: func(ctx context.Context, _ tick.Tick) error {
							runs <- time.Since(at)
							return c.job(ctx)
						}}
					go func() { ended <- tick.Run(ctx, cluster.Node(i), job) }()
				}
				time.Sleep(time.Until(at.Add(-time.Second)))
				lock, err := cluster.Node(1).Lock(t.Context(), "report")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second + c.taken)
				if err := lock.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				key := "report/" + at.UTC().Format(time.RFC3339Nano)
				time.Sleep(time.Until(at.Add(39 * time.Second)))
				if k, err := cluster.Node(0).Peek(t.Context(), key); err != nil || k.Held != 1 {
					t.Errorf("39 s after its time the tick is %+v, %v", k, err)
				}
				time.Sleep(5 * time.Second)
				if k, err := cluster.Node(0).Peek(t.Context(), key); err != nil || k.Held != 0 {
					t.Errorf("after T+Late+Skew the tick is %+v, %v", k, err)
				}
				if began := <-runs; began < c.runs || began > c.runs+time.Second || len(runs) > 0 {
					t.Errorf("it ran %v after its time, and %d times more", began, len(runs))
				}
				if err := <-reports; err != nil || len(reports) > 0 {
					t.Errorf("reported %v, and %d more", err, len(reports))
				}
				stop()
				for range 2 {
					if err := <-ended; !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestAHungJobFreesItsTick lets the job of the only instance hang. Both locks must be free soon
// after MaxIdle, and the lock of its Run is still held. When the job returns, Run reports the loss
// and goes on: it does not run that tick again.
func TestAHungJobFreesItsTick(t *testing.T) {
	const idle, every = 8 * time.Second, 2 * time.Minute
	for name, result := range map[string]error{"nil": nil, "an error": errors.New("own")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				node := mortisetest.New(t, 1).Node(0)
				at := time.Now().Truncate(every).Add(every)
				time.Sleep(time.Until(at.Add(-10 * time.Second)))
				ctx, stop := context.WithCancel(t.Context())
				var ticks []time.Duration
				reports, ended := make(chan error, 10), make(chan error, 1)
				goOn := make(chan struct{})
				go func() {
					ended <- tick.Run(ctx, node, tick.Job{Name: "report", Schedule: tick.Every(every), MaxIdle: idle,
						Late: every / 2, Report: func(_ tick.Tick, err error) { reports <- err },
						Run: func(ctx context.Context, k tick.Tick) error {
							if ticks = append(ticks, k.Time.Sub(at)); len(ticks) == 1 {
								<-goOn
								return result
							}
							return nil
						}})
				}()
				held := func(after time.Duration) (keys []string) {
					time.Sleep(time.Until(at.Add(after)))
					for k, err := range node.List(t.Context(), "report") {
						if err != nil {
							t.Fatal(err)
						}
						if k.Held > 0 {
							keys = append(keys, strings.TrimRight(k.Key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"))
						}
					}
					slices.Sort(keys)
					return keys
				}
				own := "report/" + at.UTC().Format("2006-01-02T15:04:05") // its Z is trimmed
				if keys := held(idle - time.Second); !slices.Equal(keys, []string{"report", own, "report/run/"}) {
					t.Errorf("before MaxIdle %q are held", keys)
				}
				if keys := held(idle*5/4 + time.Second); !slices.Equal(keys, []string{"report/run/"}) {
					t.Errorf("after MaxIdle %q are held", keys)
				}
				time.Sleep(20 * time.Second)
				close(goOn)
				err := <-reports
				if !errors.Is(err, mortise.ErrLost) || result != nil && !errors.Is(err, result) {
					t.Errorf("reported %v", err)
				}
				time.Sleep(every)
				if len(reports) != 1 || <-reports != nil {
					t.Error("the next tick is not reported as well")
				}
				stop()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if want := []time.Duration{0, every}; !slices.Equal(ticks, want) {
					t.Errorf("the ticks %v ran, want %v", ticks, want)
				}
			})
		})
	}
}

func TestMaxIdleNeedsAcquire(t *testing.T) {
	var locks fakelock.Locks
	job := tick.Job{Name: "report", Schedule: tick.Every(time.Hour), MaxIdle: time.Second,
		Run: func(context.Context, tick.Tick) error { return nil }}
	const want = "tick: Job.MaxIdle needs the method Acquire of *mortise.Node, and the locker is a *fakelock.Instance"
	if err := tick.Run(t.Context(), locks.Instance(), job); err == nil || err.Error() != want {
		t.Errorf("with another locker: %v", err)
	}
	for _, d := range []time.Duration{-1, 1, 100*time.Millisecond - 1} {
		job.MaxIdle = d
		if err := tick.Run(t.Context(), nil, job); err == nil || !strings.Contains(err.Error(), "MaxIdle is "+d.String()) {
			t.Errorf("with %v: %v", d, err)
		}
	}
}
