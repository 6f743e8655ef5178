package mortisecron

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-lock/mortise/tick"
)

const (
	lookBack = 5 * 366 * 24 * time.Hour // for the last tick; there are schedules with one tick in four years
	minGap   = 10 * time.Millisecond
)

// nearest returns the tick that is nearest to now, and the time between the ticks before and after
// now. A scheduler fires at its own clock's time, so the nearest tick is the right one unless the
// scheduler is late by more than half of that time. Then it takes the next tick early.
func nearest(schedule tick.Schedule, now time.Time) (at time.Time, gap time.Duration, err error) {
	if schedule == nil {
		return at, 0, errors.New("the schedule of the job is nil")
	}
	now = now.Round(0) // the wall clock alone
	before, is := last(schedule, now)
	after := schedule.Next(now)
	switch {
	case !is && after.IsZero():
		return at, 0, errors.New("the schedule of the job has no tick")
	case !is:
		return after, 2 * min(after.Sub(now), lookBack), nil
	case after.IsZero():
		return before, 2 * now.Sub(before), nil
	}
	if gap = after.Sub(before); gap < minGap {
		return at, 0, fmt.Errorf("the ticks %v and %v are %v apart: at least %v is needed", before, after, gap, minGap)
	}
	if after.Sub(now) < now.Sub(before) {
		return after, gap, nil
	}
	return before, gap, nil
}

// last returns the last tick that is not after now. It searches for the first time at which the
// next tick is after now: this time is the last tick.
func last(schedule tick.Schedule, now time.Time) (time.Time, bool) {
	begin := now.Add(-lookBack)
	later := func(t time.Time) bool { next := schedule.Next(t); return next.IsZero() || next.After(now) }
	if later(begin) {
		return time.Time{}, false
	}
	low, high := time.Duration(0), lookBack // the next tick is not after now at low, and after now at high
	for high-low > 1 {
		if middle := low + (high-low)/2; later(begin.Add(middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return begin.Add(high), true
}
