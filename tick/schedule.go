package tick

import "time"

// Schedule says when the ticks of a job are. Next returns the first tick after t, and the zero time
// if there is none. All instances must agree on the ticks: they are points in time that do not
// depend on where one asks from, so Next gives the same one for every t between two ticks. The
// schedules of cron libraries are like that, in one time zone (name it: the zones of machines
// differ); those of the kind "every so long from now" are not, and Run refuses them. Only the
// goroutine of Run calls it.
type Schedule interface {
	Next(t time.Time) time.Time
}

// Every is the schedule with a tick at every whole multiple of its duration since the Unix epoch,
// in UTC: Every(time.Hour) ticks at every full hour, Every(7*24*time.Hour) on Thursdays. Run
// refuses less than 10 ms. It is good for the years 1678 to 2262.
type Every time.Duration

// Next implements Schedule.
func (e Every) Next(t time.Time) time.Time {
	if e <= 0 {
		return t // which Run refuses
	}
	since := t.UnixNano() % int64(e) // since the tick before
	if since < 0 {
		since += int64(e)
	}
	return time.Unix(0, t.UnixNano()-since+int64(e)).UTC()
}
