package tick

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
)

const (
	defaultSkew = 5 * time.Second
	defaultLate = 5 * time.Second
	maxName     = 400
)

// ErrStillRunning is reported for a tick that was skipped because an earlier run of the job, or
// somebody who locked its name, was not done until the tick was over.
var ErrStillRunning = errors.New("tick: skipped, since the job was still running")

// Job is what to run, and when. All instances must give the same Name, Schedule, Late and Skew. It
// is copied, and its fields are called in the goroutine of Run only.
type Job struct {
	// Name is the key of the job's lock, 1 to 400 bytes. The keys of its ticks begin with it and a
	// slash.
	Name string

	// Schedule says when. It must not be nil.
	Schedule Schedule

	// Run does the work of a tick. Its context ends when a lock is lost, the node leaves or the
	// context of Run ends; it should return an error then. It must not be nil.
	Run func(ctx context.Context, t Tick) error

	// Late is how long after its nominal time a tick may begin, by each instance's clock. 0: 5 s.
	// It bounds how long a tick waits for a leader, for an earlier run, and for the end of the
	// session of an instance that crashed with it.
	Late time.Duration

	// Skew is the bound for how far the wall clocks of two instances are apart. 0: 5 s, which is
	// also what the tokens of a group with default settings need. Machines that keep their clocks
	// well can have a second.
	Skew time.Duration

	// Report is told what came of each tick that this instance had: nil if Run returned nil and no
	// lock was lost, the error of Run, with the reason if its context had ended, ErrStillRunning,
	// or why a lock could not be had. Nil: nobody is told.
	Report func(t Tick, err error)

	// Now is the wall clock. Nil: time.Now. It is here for tests.
	Now func() time.Time
}

// Tick is one tick, as the job sees it.
type Tick struct {
	// Job is the name of the job.
	Job string

	// Time is the nominal time of the tick, in UTC: the same on every instance, and in a second run
	// of the same tick.
	Time time.Time

	// Missed is how many ticks have passed since the last one that this instance ran or waited for
	// until it was over. It was not there for them, or skipped them: it was busy, stopped, or its
	// clock was set forward. Others may have run them. 1,000 means that many or more; it is 0 for
	// the first tick of a Run.
	Missed int

	// Token fences what the job writes: it rises from run to run of this job. It is 0 where the job
	// was not run.
	Token mortise.Token
}

// withDefaults returns the job with what is not said filled in, or what is wrong with it.
func (j Job) withDefaults() (Job, error) {
	var faults []error
	fault := func(bad bool, format string, args ...any) {
		if bad {
			faults = append(faults, fmt.Errorf("tick: "+format, args...))
		}
	}
	fault(j.Name == "" || len(j.Name) > maxName, "Job.Name has %d bytes: must be 1 to %d", len(j.Name), maxName)
	fault(j.Schedule == nil, "Job.Schedule is nil")
	fault(j.Run == nil, "Job.Run is nil")
	fault(j.Late < 0, "Job.Late is %v: must not be negative", j.Late)
	fault(j.Skew < 0, "Job.Skew is %v: must not be negative", j.Skew)
	if j.Late == 0 {
		j.Late = defaultLate
	}
	if j.Skew == 0 {
		j.Skew = defaultSkew
	}
	if j.Report == nil {
		j.Report = func(Tick, error) {}
	}
	if j.Now == nil {
		j.Now = time.Now
	}
	return j, errors.Join(faults...)
}
