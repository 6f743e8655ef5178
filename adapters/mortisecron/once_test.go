package mortisecron

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
)

// crons are three crons, each beside a node. The job of each is at every second.
type crons struct {
	cluster *mortisetest.Cluster
	all     []*cron.Cron
	jobs    []*Jobs

	mu     sync.Mutex // guards the fields below
	ticks  []time.Time
	by     []int
	tokens []mortise.Token
	now    int // runs that go on
	failed []error
}

// newCrons starts the crons. Instance i asks late by late[i], which is what a slow clock does.
func newCrons(t *testing.T, late []time.Duration, job func(ctx context.Context, i int)) *crons {
	c := &crons{cluster: mortisetest.NewWith(t, len(late), mortisetest.Options{MayHold: true})}
	for i, by := range late {
		jobs := New(c.cluster.Node(i), Options{Failed: c.fails,
			Now: func() time.Time { return time.Now().Add(-by) }})
		c.jobs = append(c.jobs, jobs)
		run := Func(func(ctx context.Context, at time.Time) {
			token, _ := mortise.TokenFrom(ctx)
			c.mu.Lock()
			c.ticks, c.by, c.tokens = append(c.ticks, at), append(c.by, i), append(c.tokens, token)
			if c.now++; c.now > 1 {
				t.Error("two runs overlap")
			}
			c.mu.Unlock()
			defer func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				c.now--
			}()
			job(ctx, i)
		})
		asksLate := func(j cron.Job) cron.Job { return cron.FuncJob(func() { time.Sleep(by); j.Run() }) }
		one := cron.New(cron.WithLocation(time.UTC))
		one.Schedule(tick.Every(time.Second),
			cron.NewChain(cron.Recover(cron.DiscardLogger), asksLate, jobs.Once("job", tick.Every(time.Second))).Then(run))
		c.all = append(c.all, one)
		t.Cleanup(func() { <-one.Stop().Done() })
	}
	for _, one := range c.all {
		one.Start()
	}
	return c
}

func (c *crons) fails(job string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = append(c.failed, err)
}

func (c *crons) stop() {
	for _, one := range c.all {
		<-one.Stop().Done()
	}
}

// check fails if a tick was run twice, or a token does not rise. It returns the number of ticks.
func (c *crons) check(t *testing.T) int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.ticks {
		if !c.ticks[i].Equal(c.ticks[i].Truncate(time.Second)) || c.ticks[i].Location() != time.UTC {
			t.Errorf("no tick: %v", c.ticks[i])
		}
		if i > 0 && (!c.ticks[i].After(c.ticks[i-1]) || c.tokens[i] <= c.tokens[i-1]) {
			t.Errorf("tick %v with token %d after %v with %d", c.ticks[i], c.tokens[i], c.ticks[i-1], c.tokens[i-1])
		}
	}
	return len(c.ticks)
}

func quick(context.Context, int) {}

// The job ends at once, and the other instances ask later. Each tick is still run once.
func TestEachTickIsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrons(t, []time.Duration{0, 100 * time.Millisecond, 450 * time.Millisecond}, quick)
		time.Sleep(60*time.Second + 700*time.Millisecond)
		c.stop()
		if n := c.check(t); n < 59 || n > 61 || len(c.failed) > 0 {
			t.Errorf("%d ticks in a minute, failed: %v", n, c.failed)
		}
	})
}

// The instance that runs the job is killed. The ticks until its session has expired are skipped,
// the later ones are not, and none is run twice.
func TestTheRunningInstanceIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, dead := make(chan int), make(chan bool)
		var first sync.Once
		c := newCrons(t, []time.Duration{0, 0, 0}, func(_ context.Context, i int) {
			first.Do(func() {
				began <- i
				<-dead
			})
		})
		killed := <-began
		c.cluster.Kill(killed)
		stopped := c.all[killed].Stop()
		close(dead)
		<-stopped.Done()
		time.Sleep(30 * time.Second)
		c.stop()
		if n := c.check(t); n < 20 || slices.Contains(c.by[1:], killed) {
			t.Errorf("%d ticks, by %v, %d was killed", n, c.by, killed)
		}
	})
}

// The context of a run ends when its lock is lost, and the job runs at later ticks.
func TestALossDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := make(chan int)
		var cause error
		var first sync.Once
		c := newCrons(t, []time.Duration{0, 0, 0}, func(ctx context.Context, i int) {
			first.Do(func() {
				began <- i
				<-ctx.Done()
				cause = context.Cause(ctx)
			})
		})
		c.cluster.Lose(<-began)
		time.Sleep(10 * time.Second)
		c.stop()
		n := c.check(t)
		lost := func(err error) bool { return errors.Is(err, mortise.ErrLost) }
		if n < 5 || !errors.Is(cause, mortise.ErrLost) || !slices.ContainsFunc(c.failed, lost) {
			t.Errorf("%d ticks, cause %v, failed: %v", n, cause, c.failed)
		}
	})
}

// rig is one instance, whose clock shows at.
type rig struct {
	*crons
	at   time.Time
	jobs *Jobs
}

// inBubble calls test with a rig whose clock begins 0.1 s after a tick of a schedule of one minute.
func inBubble(t *testing.T, test func(t *testing.T, r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{crons: &crons{cluster: mortisetest.New(t, 1)}, at: time.Date(2026, 5, 4, 10, 0, 0, 1e8, time.UTC)}
		r.jobs = New(r.cluster.Node(0), Options{Failed: r.fails, Now: func() time.Time { return r.at }})
		test(t, r)
	})
}

func (r *rig) once(name string, run func()) cron.Job {
	return r.jobs.Once(name, tick.Every(time.Minute))(cron.FuncJob(run))
}

// expect checks the only failure since the last call.
func (r *rig) expect(t *testing.T, text string) {
	t.Helper()
	if len(r.failed) != 1 || !strings.Contains(r.failed[0].Error(), text) ||
		strings.Count(r.failed[0].Error(), `mortisecron: job "`) != 1 {
		t.Errorf("failed: %v, want %s", r.failed, text)
	}
	r.failed = nil
}

// A call by hand is for the nearest tick, and does nothing if that is taken.
func TestACallByHand(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		runs := 0
		job := r.once("a", func() { runs++ })
		for _, step := range []struct {
			after time.Duration
			want  int
		}{
			{0, 1}, {0, 1}, {30 * time.Second, 1},
			{24800 * time.Millisecond, 1}, // 54.9 s: more than Late before the next
			{200 * time.Millisecond, 2}, {5 * time.Second, 2}, {59 * time.Second, 3}, {150 * time.Second, 4},
		} {
			r.at = r.at.Add(step.after)
			if job.Run(); runs != step.want {
				t.Errorf("at %v: %d runs, want %d", r.at, runs, step.want)
			}
		}
		if len(r.failed) > 0 {
			t.Error(r.failed)
		}
	})
}

func TestTwoJobsOfOneName(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		first, second := 0, 0
		one, two := r.once("a", func() { first++ }), r.once("a", func() { second++ })
		one.Run()
		two.Run()
		if first != 1 || second != 0 || !errors.Is(r.failed[0], ErrSameName) {
			t.Errorf("%d and %d runs, failed: %v", first, second, r.failed)
		}
		r.expect(t, `mortisecron: job "a": the tick 2026-05-04T10:00:00Z: two jobs have this name`)
		r.at = r.at.Add(time.Minute) // the first one was removed
		two.Run()
		if second != 1 || len(r.failed) > 0 {
			t.Errorf("%d runs, failed: %v", second, r.failed)
		}
	})
}

// A job gives up when its earlier run, or another holder of its key, goes on for longer than Late.
func TestACallThatHasGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		lock, err := r.cluster.Node(0).Lock(t.Context(), "cron/a")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		job := r.once("a", func() { t.Error("it runs") })
		job.Run()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("it waited for %v", took)
		}
		if !errors.Is(r.failed[0], context.DeadlineExceeded) {
			t.Error(r.failed)
		}
		r.expect(t, "does not run here for the tick 2026-05-04T10:00:00Z: ")
		if err := lock.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		job.Run() // the tick stays taken
	})
}

// A panic of the job reaches cron's own wrapper, and the lock is released.
func TestAPanicUnlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		job := cron.Recover(cron.DiscardLogger)(r.once("a", func() { panic("x") }))
		job.Run()
		if info, err := r.cluster.Node(0).Peek(t.Context(), "cron/a"); err != nil || info.Held != 0 {
			t.Errorf("%d hold the lock: %v", info.Held, err)
		}
	})
}

func TestSchedulesThatAreRefused(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		for text, schedule := range map[string]tick.Schedule{
			"use tick.Every": cron.Every(time.Minute), "is nil": nil, "has no tick": never{},
		} {
			r.jobs.Once("a", schedule)(cron.FuncJob(func() { t.Error("it runs") })).Run()
			r.expect(t, text)
		}
	})
}

type never struct{}

func (never) Next(time.Time) time.Time { return time.Time{} }

// TestARunReturnsWithoutAGroup cuts the instance off while a job runs. The run returns although no
// release is confirmed, so that cron.Stop does not wait for the network.
func TestARunReturnsWithoutAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mortisetest.NewWith(t, 3, mortisetest.Options{MayHold: true})
		var failed error
		jobs := New(c.Node(0), Options{Failed: func(_ string, err error) { failed = err }})
		var cut time.Time
		jobs.Once("job", tick.Every(time.Minute))(cron.FuncJob(func() {
			c.Isolate(0)
			cut = time.Now()
		})).Run()
		if took := time.Since(cut); took > 2*defaultLate || failed == nil {
			t.Errorf("the run returns %v after the cut: %v", took, failed)
		} else {
			t.Logf("the run returns %v after the cut: %v", took, failed)
		}
		c.Heal()
	})
}
