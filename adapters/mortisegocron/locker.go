package mortisegocron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/tick"
)

const (
	defaultPrefix = "gocron/"
	defaultLate   = 5 * time.Second
	maxTaken      = 32 // largest number of ticks in the record of a job
)

// The errors of Lock. The error that a scheduler gets also names the job and the tick.
var (
	// ErrTaken means that another scheduler of the group runs or has run the tick. It is the usual
	// error of Lock, and is not a failure.
	ErrTaken = errors.New("it is taken by another scheduler")

	// ErrSameName means that this instance was asked for a tick twice: two jobs have one name, or
	// Job.RunNow was called beside the tick. Give each job its own name with gocron.WithName, because
	// gocron names a job after its function.
	ErrSameName = errors.New("two jobs have this name (give each its own with gocron.WithName), or RunNow was " +
		"called beside the tick: this instance was asked for it")

	// ErrOtherSchedule means that the job has a period of its own, which is not that of the Locker's
	// schedule. Make a Locker with the schedule of the job.
	ErrOtherSchedule = errors.New("give the job a Locker with its own schedule instead of this one")
)

// Options change the defaults of NewLocker. All instances must use the same Prefix.
type Options struct {
	// Prefix is the beginning of all keys. The lock of a job has the key Prefix + name, and its record
	// is the data of that key. Empty means "gocron/".
	Prefix string

	// Late limits how long Lock waits for the answers of the group and for an earlier run of the job.
	// A call that is further from every tick, after one for which this instance was asked, is a run
	// outside of the schedule. Late is reduced to half of the time between two ticks. Zero means 5 s.
	Late time.Duration

	// Now returns the time of the wall clock, as the clock of the scheduler does. Nil means time.Now.
	Now func() time.Time
}

// Locker is a gocron.Locker. It serves all jobs with the ticks of its schedule.
type Locker struct {
	node     *mortise.Node
	schedule tick.Schedule
	options  Options
	born     time.Time

	mu    sync.Mutex
	runs  map[string]*run   // the present runs of this instance, by the name of the job
	asked map[string]*asked // by the name of the job
}

// NewLocker returns a Locker for jobs that run at the ticks of the schedule, or at some of them.
// For example, tick.Every(time.Minute) serves all jobs that run at full minutes. A schedule that
// cron.ParseStandard returns also works; all instances must use the same time zone.
func NewLocker(node *mortise.Node, schedule tick.Schedule, o Options) *Locker {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if o.Late <= 0 {
		o.Late = defaultLate
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Locker{node: node, schedule: schedule, options: o, born: o.Now().Round(0), runs: map[string]*run{},
		asked: map[string]*asked{}}
}

// Lock takes the present tick of the job for this instance and locks the job. It returns an error
// that wraps ErrTaken if another instance has taken the tick. If gocron asks outside of the
// schedule, as after Job.RunNow, Lock takes no tick. Such a run takes place beside the scheduled
// ones, and at most once within Options.Late.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	turn, late, err := l.turn(job)
	if err != nil {
		return nil, fmt.Errorf("mortisegocron: job %q does not run here: %w", job, err)
	}
	waiting, cancel := context.WithTimeout(ctx, late)
	defer cancel()
	lock, err := l.take(waiting, l.options.Prefix+job, turn.name)
	if err != nil {
		return nil, fmt.Errorf("mortisegocron: job %q does not run here, %s: %w", job, turn, err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &run{locker: l, job: job, at: turn.at, lock: lock}
	l.runs[job] = r
	return r, nil
}

// turn returns what gocron asks for at this moment, and how long Lock may take.
func (l *Locker) turn(job string) (t turn, late time.Duration, err error) {
	now := l.options.Now().Round(0)
	at, gap, err := nearest(l.schedule, now)
	if err != nil {
		return t, 0, err
	}
	late = min(l.options.Late, gap/2)
	before := at
	if at.After(now) && at.Sub(now) > late {
		before, _ = last(l.schedule, now)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.asked[job]
	if a == nil {
		a = &asked{}
		l.asked[job] = a
	}
	t, err = a.turn(now, at, before, l.born, late, gap)
	return t, late, err
}

// take records the turn, and then waits for the lock of the job. The record comes first, so that
// only one instance waits.
func (l *Locker) take(ctx context.Context, key, turn string) (*mortise.Lock, error) {
	for {
		data, revision, err := l.node.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		taken := strings.Fields(string(data))
		if slices.Contains(taken, turn) {
			return nil, ErrTaken
		}
		taken = append(taken, turn)
		taken = taken[max(0, len(taken)-maxTaken):]
		_, err = l.node.Put(ctx, key, []byte(strings.Join(taken, " ")), revision)
		if errors.Is(err, mortise.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The label prevents warnings about a long hold.
		return l.node.Acquire(ctx, mortise.Request{Key: key, Labels: map[string]string{"mortise.purpose": "job"}})
	}
}

// Held returns the lock under which this instance runs the job, or nil if it does not run the job.
// A job uses its token to fence what it writes, and its context to end when the lock is lost:
//
//	lock := locker.Held("reports")
//	return report(lock.Context(ctx), lock.Token())
func (l *Locker) Held(job string) *mortise.Lock {
	if r := l.run(job); r != nil {
		return r.lock
	}
	return nil
}

// Tick returns the nominal time of the tick for which this instance runs the job, in UTC. It is
// equal on every instance. In a run outside of the schedule it is the time at which gocron asked.
// If this instance does not run the job, it is the zero time.
func (l *Locker) Tick(job string) time.Time {
	if r := l.run(job); r != nil {
		return r.at
	}
	return time.Time{}
}

func (l *Locker) run(job string) *run {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.runs[job]
}

// run is a gocron.Lock.
type run struct {
	locker *Locker
	job    string
	at     time.Time
	lock   *mortise.Lock
}

// Unlock releases the lock of the job, even if ctx has ended, as it has when the scheduler stops.
func (r *run) Unlock(ctx context.Context) error {
	r.locker.mu.Lock()
	if r.locker.runs[r.job] == r { // after a loss, another run may have begun
		delete(r.locker.runs, r.job)
	}
	r.locker.mu.Unlock()
	return r.lock.Unlock(ctx)
}
