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
// other code that locked its name, was not done in time.
var ErrStillRunning = errors.New("tick: skipped because the job was still running")

// Job defines what to run, and when. All instances must use the same Name, Schedule, Late and Skew.
// It is copied, and its functions are called only on the goroutine of Run.
type Job struct {
	// Name is the key of the job's lock, 1 to 400 bytes. The keys of its ticks begin with Name and a
	// slash.
	Name string

	// Schedule returns the times of the ticks. Required.
	Schedule Schedule

	// Run does the work of a tick. Its context ends when a lock is lost, the node leaves or the
	// context of Run ends; then it should return an error. Required.
	Run func(ctx context.Context, t Tick) error

	// Late is how long after its nominal time a tick may begin, by each instance's clock. Zero means 5
	// s. It bounds how long a tick waits for a leader, for an earlier run, and for the session of a
	// crashed instance to end.
	Late time.Duration

	// Skew bounds the difference of the wall clocks of two instances. Zero means 5 s, which is also
	// what the tokens of a group with default settings need. One second is enough for machines with
	// well-kept clocks.
	Skew time.Duration

	// Report is called with the result of each tick of this instance. The error is nil if Run returned
	// nil and no lock was lost. Otherwise it is the error of Run, with the reason if its context had
	// ended, or ErrStillRunning, or why a lock could not be had. Nil means no reports.
	Report func(t Tick, err error)

	// Now is the wall clock, for tests. Nil means time.Now.
	Now func() time.Time
}

// Tick is one tick, as the job sees it.
type Tick struct {
	Job string

	// Time is the nominal time of the tick, in UTC, the same on every instance and in a second run.
	Time time.Time

	// Missed is how many ticks have passed since the last one that this instance ran, or waited for
	// until it was over. It skipped them because it was busy or stopped, or its clock was set forward;
	// other instances may have run them. 1,000 means that many or more. It is 0 for the first tick of
	// a Run.
	Missed int

	// Token fences what the job writes: it rises from run to run of this job. It is 0 if the job was
	// not run.
	Token mortise.Token
}

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
