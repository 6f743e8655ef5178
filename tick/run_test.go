package tick_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/fakelock"
	"github.com/mortise-lock/mortise/locker"
	"github.com/mortise-lock/mortise/tick"
)

// crew is a set of instances with their own clocks that all run one job, inside a bubble of
// testing/synctest. Times are in seconds after c.began, which is a full hour.
type crew struct {
	t     *testing.T
	locks fakelock.Locks
	began time.Time
	job   tick.Job
	takes time.Duration // the duration of the job
	fails error
	store *store // nil if the lockers are not Stores

	mu      sync.Mutex // guards the fields below
	running int
	runs    []string // "instance@nominal: begin-end", in the order in which they ended
	tokens  []mortise.Token
	reports []string
}

type member struct {
	*fakelock.Instance
	cancel context.CancelCauseFunc
	ended  chan struct{}
	after  time.Duration // the time when Run returned
	err    error
}

func newCrew(t *testing.T, every, takes time.Duration) *crew {
	c := &crew{t: t, began: time.Now(), takes: takes, job: tick.Job{Name: "report", Schedule: tick.Every(every)}}
	time.Sleep(time.Second) // the tick of time 0 may still begin
	c.began = c.began.Truncate(time.Hour)
	return c
}

func seconds(d time.Duration) string { return fmt.Sprintf("%g", d.Seconds()) }

func (c *crew) join(name string, off time.Duration) *member {
	ctx, cancel := context.WithCancelCause(c.t.Context())
	m := &member{Instance: c.locks.Instance(), cancel: cancel, ended: make(chan struct{})}
	job := c.job
	job.Now = func() time.Time { return time.Now().Add(off) }
	job.Run = func(ctx context.Context, t tick.Tick) error { return c.work(ctx, name, t) }
	job.Report = func(t tick.Tick, err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.reports = append(c.reports, fmt.Sprintf("%s@%s: %v", name, seconds(t.Time.Sub(c.began)), err))
	}
	go func() {
		defer close(m.ended)
		m.err = tick.Run(ctx, c.locker(m), job)
		m.after = time.Since(c.began)
	}()
	return m
}

func (c *crew) locker(m *member) locker.Locker {
	if c.store == nil {
		return m
	}
	return struct {
		*fakelock.Instance
		*store
	}{m.Instance, c.store}
}

func (c *crew) work(ctx context.Context, name string, t tick.Tick) error {
	c.mu.Lock()
	begin := time.Since(c.began)
	if c.running++; c.running > 1 {
		c.t.Errorf("%s runs %v beside another run", name, t.Time)
	}
	c.tokens = append(c.tokens, t.Token)
	c.mu.Unlock()
	err := c.fails
	select {
	case <-time.After(c.takes):
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
	c.runs = append(c.runs, fmt.Sprintf("%s@%s: %s-%s", name, seconds(t.Time.Sub(c.began)), seconds(begin),
		seconds(time.Since(c.began))))
	return err
}

func (c *crew) until(at float64) {
	time.Sleep(time.Until(c.began.Add(time.Duration(at * float64(time.Second)))))
	synctest.Wait()
}

// A call of c.ran checks that exactly the given runs have ended so far, and that tokens increased.
func (c *crew) ran(want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(c.runs, ", "); got != strings.Join(want, ", ") {
		c.t.Errorf("ran %s; want %s", got, strings.Join(want, ", "))
	}
	for i := 1; i < len(c.tokens); i++ {
		if c.tokens[i] <= c.tokens[i-1] {
			c.t.Errorf("tokens do not rise: %v", c.tokens)
		}
	}
}

func (c *crew) reported(want ...string) {
	c.t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := strings.Join(c.reports, ", "); got != strings.Join(want, ", ") {
		c.t.Errorf("reported %s; want %s", got, strings.Join(want, ", "))
	}
}

func (c *crew) end(all ...*member) {
	c.t.Helper()
	for _, m := range all {
		m.cancel(nil)
	}
	for _, m := range all {
		<-m.ended
	}
	time.Sleep(time.Minute) // until the sessions of the crashed members have expired
	synctest.Wait()
	if keys := c.locks.Keys(); len(keys) != 0 {
		c.t.Errorf("still taken: %q", keys)
	}
}

func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// The clocks differ by up to 5 s, and the job takes a millisecond.
func TestAQuickJobRunsOncePerTickWhateverTheClocks(t *testing.T) {
	for _, skews := range [][3]float64{{0, 0, 0}, {0, 2, 1}, {0, -2, 0}, {2, -2, 0}, {2.5, -2.5, 0}, {0, -5, -4.999},
		{5, 0, 0.001}} {
		t.Run(fmt.Sprint(skews), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCrew(t, time.Minute, time.Millisecond)
				c.until(30)
				var all []*member
				for i, s := range skews {
					all = append(all, c.join(fmt.Sprint(i), time.Duration(s*float64(time.Second))))
				}
				c.until(5*60 + 30)
				c.mu.Lock()
				ran := map[string]int{}
				for _, run := range c.runs {
					_, nominal, _ := strings.Cut(run, "@")
					nominal, _, _ = strings.Cut(nominal, ":")
					ran[nominal]++
				}
				c.mu.Unlock()
				for _, nominal := range []string{"60", "120", "180", "240", "300"} {
					if ran[nominal] != 1 {
						t.Errorf("the tick %s ran %d times", nominal, ran[nominal])
					}
				}
				if len(ran) != 5 {
					t.Errorf("ran %v, want five ticks", ran)
				}
				c.end(all...)
			})
		})
	}
}

func TestTicksThatAreCloseTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Second, time.Millisecond)
		c.until(30.7) // the tick of 30 may no longer begin
		a := c.join("ahead", 0)
		c.until(31.2) // the clock of b shows 30.7: it is also too late for the tick of 30
		b := c.join("behind", -500*time.Millisecond)
		c.until(33.7)
		c.ran("ahead@31: 31-31.001", "ahead@32: 32-32.001", "ahead@33: 33-33.001")
		c.end(a, b)
	})
}

// If clocks differ by more than Skew, a tick runs twice, one run after the other. The later run
// must have the higher token.
func TestClocksBeyondTheBoundRunATickTwice(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Millisecond)
		c.job.Skew = time.Second
		c.until(30)
		a, b := c.join("ahead", 0), c.join("behind", -3*time.Second)
		c.until(90)
		c.ran("ahead@60: 60-60.001", "behind@60: 66-66.001")
		c.end(a, b)
	})
}

func TestACrashInTheMiddleIsTakenOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, 4*time.Second)
		c.job.Late = 20 * time.Second
		c.until(30)
		a, b := c.join("first", time.Second), c.join("second", 0)
		c.until(61)
		a.Crash(10 * time.Second)
		c.until(100)
		c.ran("first@60: 59-61", "second@60: 71-75")
		if <-a.ended; !errors.Is(a.err, mortise.ErrClosed) {
			t.Errorf("the crashed one returned %v", a.err)
		}
		c.end(a, b)
	})
}

func TestACrashIsNotTakenOverOnceTheTickIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, 4*time.Second)
		c.until(30)
		a, b := c.join("first", time.Second), c.join("second", 0)
		c.until(61)
		a.Crash(10 * time.Second)
		c.until(130)
		c.ran("first@60: 59-61", "second@120: 120-124")
		c.end(a, b)
	})
}

func TestACrashAfterTheJobRunsItAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Millisecond)
		c.job.Late = 20 * time.Second
		c.until(30)
		a, b := c.join("first", time.Second), c.join("second", 0)
		c.until(61)
		a.Crash(10 * time.Second)
		c.until(100)
		c.ran("first@60: 59-59.001", "second@60: 71-71.001")
		c.end(a, b)
	})
}

// While a run lasts, ticks are skipped. If the run ends while a tick may still begin, that tick
// begins late.
func TestASlowJobSkipsTicks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, 10*time.Second, 23*time.Second)
		c.until(5)
		a, b := c.join("a", time.Second), c.join("b", 0)
		c.until(58)
		c.ran("a@10: 9-32", "b@30: 32-55")
		c.reported("b@20: tick: skipped because the job was still running", "a@10: <nil>",
			"a@40: tick: skipped because the job was still running",
			"a@50: tick: skipped because the job was still running", "b@30: <nil>")
		c.end(a, b)
	})
}

func TestAFailedJobIsReportedAndHasHadItsTick(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.fails = errors.New("the printer is on fire")
		c.until(30)
		a, b := c.join("a", time.Second), c.join("b", 0)
		c.until(130)
		c.ran("a@60: 59-60", "a@120: 119-120")
		c.reported("a@60: the printer is on fire", "a@120: the printer is on fire")
		c.end(a, b)
	})
}

func TestALostLockEndsTheJob(t *testing.T) {
	for _, which := range []string{"report", "report/2000-01-01T00:01:00Z"} {
		t.Run(which, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCrew(t, time.Minute, 2*time.Second)
				c.until(30)
				a, b := c.join("a", time.Second), c.join("b", 0)
				c.until(60.5)
				if !c.locks.Lose(which) {
					t.Fatalf("no instance has it: %q", c.locks.Keys())
				}
				c.until(90)
				c.ran("a@60: 59-60.5", "b@60: 60.5-62.5")
				c.reported("a@60: "+mortise.ErrLost.Error()+": context canceled", "b@60: <nil>")
				c.end(a, b)
			})
		})
	}
}

// Machine b is suspended while its Run waits for the lock, and gets the lock before its timers
// fire. By then the tick may no longer begin, so Run must read the clock.
func TestAMachineThatSleptLetsTheTickGo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, 2*time.Second)
		c.until(30)
		a := c.join("a", time.Second)
		var slept time.Duration
		var mu sync.Mutex
		job := c.job
		job.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(slept)
		}
		job.Run = func(ctx context.Context, t tick.Tick) error { return c.work(ctx, "b", t) }
		job.Report = func(at tick.Tick, err error) { t.Errorf("b had the tick %v: %v", at.Time, err) }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- tick.Run(ctx, c.locks.Instance(), job) }()
		c.until(60.5)
		mu.Lock()
		slept = 10 * time.Second
		mu.Unlock()
		c.locks.Lose("report/2000-01-01T00:01:00Z")
		c.until(90)
		c.ran("a@60: 59-60.5")
		cancel()
		<-ended
		c.end(a)
	})
}

func TestALostTickIsNotKept(t *testing.T) {
	for name, lose := range map[string]func(*crew, *member){
		"lost":   func(c *crew, _ *member) { c.locks.Lose("report/2000-01-01T00:01:00Z") },
		"closed": func(_ *crew, m *member) { m.Crash(time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := newCrew(t, time.Minute, time.Second)
				c.until(30)
				a := c.join("a", 0)
				c.until(62)
				lose(c, a)
				c.until(63)
				a.cancel(nil)
				if <-a.ended; a.after > 63*time.Second {
					t.Errorf("Run returned after %v: it kept what it no longer had", a.after)
				}
				c.end(a)
			})
		})
	}
}

func TestALostSessionIsGotOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.until(30)
		a := c.join("a", 0)
		synctest.Wait()
		if keys := c.locks.Keys(); len(keys) != 1 || !c.locks.Lose(keys[0]) {
			t.Fatalf("an idle Run has %q", keys)
		}
		c.until(90)
		c.ran("a@60: 60-61")
		c.end(a)
	})
}

func TestLeavingEndsAnIdleRunAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, 24*time.Hour, time.Second)
		a := c.join("a", 0)
		c.until(90)
		a.Leave()
		if <-a.ended; !errors.Is(a.err, mortise.ErrLeaving) || a.after != 90*time.Second {
			t.Errorf("after %v it returned %v", a.after, a.err)
		}
		c.end(a)
	})
}

// When a node leaves in the middle of the job, another instance gets the tick. After the job, the
// lock is kept until no clock allows the tick.
func TestLeavingInAndAfterTheJob(t *testing.T) {
	for _, way := range []struct {
		leave func(*member)
		want  error
	}{
		{func(m *member) { m.Leave() }, mortise.ErrLeaving},
		{func(m *member) { m.cancel(nil) }, context.Canceled},
	} {
		bubble(t, func(t *testing.T) {
			c := newCrew(t, time.Minute, 2*time.Second)
			c.until(30)
			a, b, d := c.join("a", 2*time.Second), c.join("b", time.Second), c.join("d", 0)
			c.until(59)
			way.leave(a)
			c.until(62)
			way.leave(b)
			c.until(90)
			c.ran("a@60: 58-59", "b@60: 59-61")
			if !errors.Is(a.err, way.want) || a.after != 59*time.Second {
				t.Errorf("the first returned %v after %v, want at once", a.err, a.after)
			}
			if !errors.Is(b.err, way.want) || b.after != 69*time.Second {
				t.Errorf("the second returned %v after %v, want when the tick is free by its clock", b.err, b.after)
			}
			c.end(a, b, d)
		})
	}
}

func TestAClockThatLeapsMissesTicks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var mu sync.Mutex
		var off time.Duration
		var seen []string
		job := tick.Job{
			Name: "report", Schedule: tick.Every(time.Hour),
			Run: func(_ context.Context, t tick.Tick) error {
				seen = append(seen, fmt.Sprintf("%s missed %d", t.Time.Format("15:04"), t.Missed))
				return nil
			},
			Now: func() time.Time {
				mu.Lock()
				defer mu.Unlock()
				return time.Now().Add(off)
			},
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		time.Sleep(time.Minute)
		go func() { ended <- tick.Run(ctx, new(fakelock.Locks).Instance(), job) }()
		time.Sleep(time.Hour)
		mu.Lock()
		off = 3*time.Hour + 30*time.Minute // the wall clock changes from 01:01 to 04:31
		mu.Unlock()
		time.Sleep(30 * time.Minute) // Run would have slept for an hour
		cancel()
		if err := <-ended; err != context.Canceled {
			t.Errorf("Run returned %v", err)
		}
		if got := strings.Join(seen, ", "); got != "01:00 missed 0, 05:00 missed 3" {
			t.Errorf("saw %s", got)
		}
	})
}

func TestAPanicOfTheJobReachesTheCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var locks fakelock.Locks
		defer func() {
			if v := recover(); v != "broken" {
				t.Errorf("Run panicked with %v", v)
			}
			if keys := locks.Keys(); len(keys) != 0 {
				t.Errorf("still taken: %q", keys)
			}
		}()
		_ = tick.Run(t.Context(), locks.Instance(), tick.Job{Name: "report", Schedule: tick.Every(time.Minute),
			Run: func(context.Context, tick.Tick) error { panic("broken") }})
	})
}

type once time.Time

func (o once) Next(t time.Time) time.Time {
	if time.Time(o).After(t) {
		return time.Time(o)
	}
	return time.Time{}
}

func TestRunEndsWithTheSchedule(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.job.Schedule = once(c.began.Add(time.Minute))
		a := c.join("a", 0)
		if <-a.ended; a.err != nil {
			t.Errorf("Run returned %v", a.err)
		}
		c.ran("a@60: 60-61")
		c.end(a)
	})
}

type moody struct {
	*fakelock.Instance
	asked int
	full  map[int]bool // the numbers of the requests that it refuses, counted from 1
}

func (m *moody) Do(ctx context.Context, key string, fn func(context.Context, mortise.Token) error) error {
	if m.asked++; m.full[m.asked] {
		return mortise.ErrOverloaded
	}
	return m.Instance.Do(ctx, key, fn)
}

func TestAnOverloadedNodeSkipsATick(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.until(30)
		// The presence lock, the lock of the first tick, and the job's lock in the second tick are
		// refused.
		locker := &moody{Instance: c.locks.Instance(), full: map[int]bool{1: true, 3: true, 5: true}}
		var reports []string
		job := c.job
		job.Run = func(ctx context.Context, t tick.Tick) error { return c.work(ctx, "a", t) }
		job.Report = func(t tick.Tick, err error) {
			reports = append(reports, fmt.Sprint(t.Missed, errors.Is(err, mortise.ErrOverloaded)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		if err := tick.Run(ctx, locker, job); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Run returned %v", err)
		}
		c.ran("a@180: 180-181")
		if got := strings.Join(reports, ", "); got != "0 true, 1 true, 2 false" {
			t.Errorf("reported %s", got)
		}
	})
}

func TestRunRefusesWhatCannotBe(t *testing.T) {
	locker := new(fakelock.Locks).Instance()
	run := func(context.Context, tick.Tick) error { return nil }
	err := tick.Run(t.Context(), locker, tick.Job{Late: -1, Skew: -1})
	for _, field := range []string{"Name", "Schedule", "Run", "Late", "Skew"} {
		if err == nil || !strings.Contains(err.Error(), "Job."+field) {
			t.Errorf("the error says nothing of %s: %v", field, err)
		}
	}
	if err := tick.Run(t.Context(), nil, tick.Job{Name: "report", Schedule: tick.Every(time.Hour),
		Run: run}); err == nil {
		t.Error("no locker is needed")
	}
	if err := tick.Run(t.Context(), locker, tick.Job{Name: "report", Schedule: tick.Every(0),
		Run: run}); err == nil || !strings.Contains(err.Error(), "advance") {
		t.Errorf("a schedule that stands gave %v", err)
	}
}
