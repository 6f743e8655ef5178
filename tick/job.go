package tick

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/hold"
)

const (
	defaultSkew = 5 * time.Second
	defaultLate = 5 * time.Second
	maxName     = 400
)

// ErrStillRunning is reported for a tick that was skipped because an earlier run of the job, or
// other code, held the lock of the job's name for too long.
var ErrStillRunning = errors.New("tick: skipped because the job was still running")

// Job defines what to run, and when. All instances must use the same Name, Schedule, Late and Skew.
// Run copies the Job, and calls its functions only on the goroutine of Run.
type Job struct {
	// Name is the key of the job's lock, 1 to 400 bytes. The keys of its ticks begin with Name and
	// a slash.
	Name string

	// Schedule returns the times of the ticks. Required.
	Schedule Schedule

	// Run does the work of a tick. Its context ends when a lock is lost, the node leaves or the
	// context of Run ends. Run should then return an error. Required.
	Run func(ctx context.Context, t Tick) error

	// Late is how long after its nominal time a tick may begin, by the clock of each instance. Zero
	// means 5 s.
	Late time.Duration

	// Skew is the largest difference between the wall clocks of two instances. Zero means 5 s.
	Skew time.Duration

	// MaxIdle is mortise.Request.MaxIdle of the job's lock. A job that has not called mortise.Beat
	// with its context for that time hangs: the context ends, and another instance can run the tick
	// again, if it may still begin, and the next ticks. This instance runs none until the job has
	// returned. Zero means no limit. MaxIdle needs a locker with the method Acquire of *mortise.Node.
	MaxIdle time.Duration

	// Report is called with the result of each tick of this instance. The error is nil if Run
	// returned nil and no lock was lost. Otherwise, if the job ran, it contains the error of Run
	// and the reason, if any, why the context of Run ended. If the tick was skipped, it is
	// ErrStillRunning or the reason why a lock was not granted. A nil Report means no reports.
	Report func(t Tick, err error)

	// Now returns the time of the wall clock. Tests may set it. Nil means time.Now.
	Now func() time.Time
}

// Tick describes one tick to the functions of a Job.
type Tick struct {
	Job string

	// Time is the nominal time of the tick, in UTC, equal on every instance and in a second run.
	Time time.Time

	// Missed is the number of ticks that this instance skipped directly before this one, because it
	// was busy or stopped, or its clock was set forward. Other instances may have run the skipped
	// ticks. 1,000 means 1,000 or more. Missed is 0 for the first tick of a Run.
	Missed int

	// Token is the fencing token for what the job writes. It increases from run to run of this job.
	// It is 0 if the job was not run.
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
	fault(j.MaxIdle != 0 && j.MaxIdle < hold.MinIdle, "Job.MaxIdle is %v: must be 0 (no limit), or at least %v", j.MaxIdle,
		hold.MinIdle)
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
