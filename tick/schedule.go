package tick

import "time"

// Schedule returns the times of the ticks of a job. Next returns the first tick after t, or the
// zero time if there is none. Next must return the same tick for every t between two ticks, so that
// all instances agree. The schedules of cron libraries do so if all instances use one time zone
// (set it explicitly). Schedules that add an interval to t do not, and Run refuses them. Next is
// called only on the goroutine of Run.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Every is the schedule with a tick at every whole multiple of its duration since the Unix epoch,
// in UTC: Every(time.Hour) has a tick at every full hour, Every(7*24*time.Hour) on Thursdays. Run
// refuses durations below 10 ms. Every works for the years 1678 to 2262.
type Every time.Duration

// Next implements Schedule.
func (e Every) Next(t time.Time) time.Time {
	if e <= 0 {
		return t // Run refuses such a schedule
	}
	now := t.UnixNano()
	since := now % int64(e) // the time since the last tick
	if since < 0 {
		since += int64(e)
	}
	next := now - since + int64(e)
	if next < now { // no tick in the years in which it works
		return time.Time{}
	}
	return time.Unix(0, next).UTC()
}
