package mortisecron

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/tick"
)

const (
	defaultPrefix = "cron/"
	defaultLate   = 5 * time.Second
	maxTaken      = 32 // largest number of ticks in the record of a job
)

// The reasons why a job does not run. Options.Failed gets them in an error that also names the job.
var (
	// ErrSameName means that this instance was asked for a tick by two jobs of one name.
	ErrSameName = errors.New("two jobs have this name: give each its own")

	// ErrEvery means that the schedule is a cron.ConstantDelaySchedule, which cron.Every and "@every"
	// return.
	ErrEvery = errors.New("the ticks of cron.Every and \"@every\" differ in each instance: use tick.Every or an " +
		"expression")

	errTaken = errors.New("it is taken by another instance")
)

// Options change the defaults of New. All instances must use the same Prefix.
type Options struct {
	// Prefix is the beginning of all keys. The lock of a job has the key Prefix + name, and its record
	// is the data of that key. Empty means "cron/".
	Prefix string

	// Late limits how long a job waits for the answers of the group and for its earlier run, and,
	// when it has run, for the confirmation that its lock is released. A call that is earlier than
	// the next tick by more than Late is for the tick before. Late is reduced to half of the time
	// between two ticks. Zero or less means 5 s.
	Late time.Duration

	// Now returns the time of the wall clock. Nil means time.Now.
	Now func() time.Time

	// Failed is called with the reason if a job does not run at a tick that no other instance has
	// taken, and if its lock was lost while it ran. Nil means that the reasons are dropped.
	Failed func(job string, err error)
}

// Jobs makes the wrappers for the jobs of one instance.
type Jobs struct {
	node    *mortise.Node
	options Options

	mu    sync.Mutex
	asked map[string]asked // by the name of the job
}

// asked is the last tick for which this instance was asked, and the job that asked.
type asked struct {
	at time.Time
	by *once
}

// New returns the Jobs of an instance. It sends nothing.
func New(node *mortise.Node, o Options) *Jobs {
	if o.Prefix == "" {
		o.Prefix = defaultPrefix
	}
	if o.Late <= 0 {
		o.Late = defaultLate
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Jobs{node: node, options: o, asked: map[string]asked{}}
}

// Func is a job that gets the context of its lock, and the nominal time of its tick in UTC.
// mortise.TokenFrom finds the fencing token in the context. The wrapper of Once must be the last
// one in the chain of a Func.
type Func func(ctx context.Context, at time.Time)

// Run is for a Func without the wrapper of Once. It gets the zero time.
func (f Func) Run() { f(context.Background(), time.Time{}) }

var _ cron.Job = Func(nil)

// Once returns the wrapper of a job that all instances run under the same name and at the ticks of
// the same schedule. Each job needs its own.
func (j *Jobs) Once(name string, schedule tick.Schedule) cron.JobWrapper {
	return func(job cron.Job) cron.Job { return &once{jobs: j, name: name, schedule: schedule, job: job} }
}

// once is a wrapped job.
type once struct {
	jobs     *Jobs
	name     string
	schedule tick.Schedule
	job      cron.Job
}

// Run runs the job if no instance has taken its tick.
func (o *once) Run() {
	if err := o.run(); err != nil && !errors.Is(err, errTaken) && o.jobs.options.Failed != nil {
		o.jobs.options.Failed(o.name, fmt.Errorf("mortisecron: job %q: %w", o.name, err))
	}
}

func (o *once) run() (err error) {
	at, late, err := o.tick()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), late)
	defer cancel()
	lock, err := o.jobs.take(ctx, o.jobs.options.Prefix+o.name, name(at))
	if err != nil {
		return fmt.Errorf("it does not run here for the tick %s: %w", name(at), err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), o.jobs.options.Late)
		defer cancel()
		err = lock.Unlock(ctx) // without a leader it takes effect later
	}()
	if f, is := o.job.(Func); is {
		f(lock.Context(context.Background()), at)
	} else {
		o.job.Run()
	}
	return nil
}

// tick returns the tick for which cron calls, and how long the wait for the lock may take.
func (o *once) tick() (at time.Time, late time.Duration, err error) {
	// cron.Every returns one, whose next tick depends on the time that it is given.
	if _, is := o.schedule.(cron.ConstantDelaySchedule); is {
		return at, 0, ErrEvery
	}
	now := o.jobs.options.Now().Round(0)
	at, gap, err := nearest(o.schedule, now)
	if err != nil {
		return at, 0, err
	}
	late = min(o.jobs.options.Late, gap/2)
	if at.Sub(now) > late {
		if before, is := last(o.schedule, now); is { // cron calls late, after a sleep of the machine
			at = before
		}
	}
	o.jobs.mu.Lock()
	defer o.jobs.mu.Unlock()
	if a := o.jobs.asked[o.name]; a.at.Equal(at) && a.by != o {
		return at, 0, fmt.Errorf("the tick %s: %w", name(at), ErrSameName)
	}
	o.jobs.asked[o.name] = asked{at, o}
	return at.UTC(), late, nil
}

func name(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// take records the tick, and then waits for the lock of the job. The record comes first, so that
// only one instance waits.
func (j *Jobs) take(ctx context.Context, key, tick string) (*mortise.Lock, error) {
	for {
		data, revision, err := j.node.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		taken := strings.Fields(string(data))
		if slices.Contains(taken, tick) {
			return nil, errTaken
		}
		taken = append(taken, tick)
		taken = taken[max(0, len(taken)-maxTaken):]
		_, err = j.node.Put(ctx, key, []byte(strings.Join(taken, " ")), revision)
		if errors.Is(err, mortise.ErrConflict) {
			continue
		}
		if err != nil {
			return nil, err
		}
		// The label prevents warnings about a long hold.
		return j.node.Acquire(ctx, mortise.Request{Key: key, Labels: map[string]string{"mortise.purpose": "job"}})
	}
}
