package tick

import "time"

// Schedule returns the times of the ticks of a job. Next returns the first tick after t, or the
// zero time if there is none. All instances must agree on the ticks, so Next must return the same
// tick for every t between two ticks. The schedules of cron libraries do so if all instances use
// one time zone; set it in the schedule, because the zones of machines differ. A schedule that
// returns t plus an interval does not, and Run refuses it. Only the goroutine of Run calls Next.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Every is the schedule with a tick at every whole multiple of its duration since the Unix epoch,
// in UTC. Every(time.Hour) has a tick at every full hour, and Every(7*24*time.Hour) on every
// Thursday. Run refuses a duration of less than 10 ms. Every works for the years 1678 to 2262.
type Every time.Duration

// Next implements Schedule.
func (e Every) Next(t time.Time) time.Time {
	if e <= 0 {
		return t // Run refuses that
	}
	since := t.UnixNano() % int64(e) // time since the previous tick
	if since < 0 {
		since += int64(e)
	}
	return time.Unix(0, t.UnixNano()-since+int64(e)).UTC()
}
