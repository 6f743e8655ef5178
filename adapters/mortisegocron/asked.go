package mortisegocron

import (
	"fmt"
	"strings"
	"time"
)

// A call of Lock has no time and no reason: gocron passes the name of the job alone. So an instance
// remembers when it was asked for a job, and concludes why it is asked now.

// asked is what an instance remembers of one job.
type asked struct {
	tick  time.Time    // the last tick for which it was asked; zero before the first
	calls [3]time.Time // the last calls, the newest last
}

// turn is what a call asks for.
type turn struct {
	at   time.Time // the tick, or the time of a run outside of the schedule, in UTC
	name string    // in the record of the job
}

// String completes "does not run here, ".
func (t turn) String() string {
	if strings.HasPrefix(t.name, "+") {
		return "outside of its schedule at " + name(t.at)
	}
	return "for the tick " + name(t.at)
}

const (
	steadyParts = 500 // two intervals are equal if they differ by less than one of so many parts
	steadyLeast = 100 * time.Millisecond
)

// turn concludes what a call at now asks for. at is the nearest tick, and before is the last one,
// or zero if there is none. late is how far from a tick a call is one for that tick, and gap the
// time between the ticks around now. born is when the instance could be asked first.
//
// A call that is further from every tick is for the last tick, if this instance was not yet asked
// for it: it is late, or its job has the period of the schedule and another phase. Every tick is
// then run once at most. Otherwise the call is outside of the schedule, as after Job.RunNow.
func (a *asked) turn(now, at, before, born time.Time, late, gap time.Duration) (turn, error) {
	since := now.Sub(a.calls[2])
	a.calls = [3]time.Time{a.calls[1], a.calls[2], now}
	if now.Sub(at).Abs() <= late {
		if a.tick.Equal(at) && since < min(late, gap/4) {
			return turn{}, fmt.Errorf("the tick %s: %w %v before", name(at), ErrSameName, since)
		}
		a.tick = at
		return tickOf(at), nil
	}
	if !before.IsZero() && before.After(a.tick) && !before.Before(born) {
		a.tick = before
		return tickOf(before), nil
	}
	if every, is := a.steady(); is {
		return turn{}, fmt.Errorf("it is run every %v here: %w, whose ticks are %v apart", every.Round(time.Millisecond),
			ErrOtherSchedule, gap)
	}
	return turn{now.UTC(), "+" + name(now.Round(late))}, nil
}

func tickOf(at time.Time) turn { return turn{at.UTC(), name(at)} }

// steady returns the interval of the last three calls if they came at a period of their own.
func (a *asked) steady() (time.Duration, bool) {
	if a.calls[0].IsZero() {
		return 0, false
	}
	first, second := a.calls[1].Sub(a.calls[0]), a.calls[2].Sub(a.calls[1])
	return second, (first - second).Abs() < max(steadyLeast, second/steadyParts)
}

func name(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
