package mortisegocron

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/mortisetest"
	"github.com/mortise-lock/mortise/tick"
)

// shifted is a clock that differs from the clock of the process.
type shifted struct {
	clockwork.Clock
	by time.Duration
}

func (s shifted) Now() time.Time { return s.Clock.Now().Add(s.by) }

// runs counts the runs of each tick.
type runs struct {
	mu    sync.Mutex
	count map[string]int
	by    map[int]int // runs of each instance
	now   int         // runs that go on at this moment
	most  int
}

func (r *runs) begin(i int, tick string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.count == nil {
		r.count, r.by = map[string]int{}, map[int]int{}
	}
	r.count[tick]++
	r.by[i]++
	r.now++
	r.most = max(r.most, r.now)
}

func (r *runs) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
}

// repeated returns the ticks that were run more than once.
func (r *runs) repeated() (ticks []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tick, n := range r.count {
		if n > 1 {
			ticks = append(ticks, tick)
		}
	}
	slices.Sort(ticks)
	return ticks
}

// missing returns the ticks after from, up to and including to, that were not run.
func (r *runs) missing(from, to time.Time, gap time.Duration) (ticks []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at := from.Add(gap); !at.After(to); at = at.Add(gap) {
		if r.count[name(at)] == 0 {
			ticks = append(ticks, name(at))
		}
	}
	return ticks
}

// naive is the adapter that one would write first: it holds the lock while the job runs.
type naive struct{ node *mortise.Node }

func (n naive) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	return n.node.TryLock(ctx, job)
}

// schedulers are three schedulers, each beside a node and with a clock of its own.
type schedulers struct {
	t       *testing.T
	cluster *mortisetest.Cluster
	all     []gocron.Scheduler
	lockers []*Locker
	runs    runs
	errs    []error
}

type options struct {
	gap    time.Duration
	clocks []time.Duration
	naive  bool
	work   func(s *schedulers, i int)
}

func newSchedulers(t *testing.T, o options) *schedulers {
	t.Helper()
	s := &schedulers{t: t, cluster: mortisetest.NewWith(t, len(o.clocks), mortisetest.Options{MayHold: true})}
	begin := time.Now().Truncate(time.Second).Add(2 * time.Second)
	time.Sleep(time.Until(begin.Add(-o.gap / 2)))
	for i, by := range o.clocks {
		clock := shifted{clockwork.NewRealClock(), by}
		locker := NewLocker(s.cluster.Node(i), tick.Every(o.gap), Options{Now: clock.Now})
		var used gocron.Locker = locker
		if o.naive {
			used = naive{s.cluster.Node(i)}
		}
		scheduler, err := gocron.NewScheduler(gocron.WithClock(clock), gocron.WithLocation(time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		_, err = scheduler.NewJob(gocron.DurationJob(o.gap), gocron.NewTask(func() {
			at := locker.Tick("job")
			if o.naive {
				at, _, _ = nearest(tick.Every(o.gap), clock.Now())
			}
			s.runs.begin(i, name(at))
			defer s.runs.end()
			if o.work != nil {
				o.work(s, i)
			}
		}), gocron.WithName("job"), gocron.WithDistributedJobLocker(used),
			gocron.WithStartAt(gocron.WithStartDateTime(clock.Now().Truncate(o.gap).Add(o.gap))),
			gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { s.refused(err) })))
		if err != nil {
			t.Fatal(err)
		}
		s.all, s.lockers = append(s.all, scheduler), append(s.lockers, locker)
	}
	for _, scheduler := range s.all {
		scheduler.Start()
	}
	return s
}

func (s *schedulers) refused(err error) {
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	s.errs = append(s.errs, err)
}

// stop stops all schedulers, and returns errors of Lock other than ErrTaken.
func (s *schedulers) stop() (others []error) {
	s.t.Helper()
	for _, scheduler := range s.all {
		if err := scheduler.Shutdown(); err != nil {
			s.t.Error(err)
		}
	}
	s.runs.mu.Lock()
	defer s.runs.mu.Unlock()
	for _, err := range s.errs {
		if !errors.Is(err, ErrTaken) {
			others = append(others, err)
		}
	}
	return others
}
