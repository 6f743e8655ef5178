package clock

import "time"

// Alarm wakes the goroutine of an owner no later than its core asks for. The core's time moves with
// nearly every turn, and nearly always to a later one, so Set leaves a timer alone that is set
// early enough: a turn too many now and then costs less than a look at the clock and a timer in
// each turn. An Alarm belongs to one goroutine.
type Alarm struct {
	*time.Timer
	clock Clock
	at    Time // when the timer fires; zero: it is not set
}

// NewAlarm returns an alarm that is not set. The owner must stop it.
func NewAlarm(c Clock) *Alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Alarm{Timer: t, clock: c}
}

// Set makes the alarm fire at the given time or earlier; now is the time of the turn. Zero changes
// nothing. While a machine is suspended its clock can go on and its timers stand still: an alarm
// that should have fired long ago is set anew.
func (a *Alarm) Set(now, at Time) {
	if at == 0 || !at.Before(a.at) && now.Before(a.at) {
		return
	}
	a.at = at
	// At least a millisecond, so that a deadline which a turn could not meet never becomes a loop.
	a.Reset(max(at.Sub(a.clock.Now()), time.Millisecond))
}

// Fired must be called when the owner has received from C.
func (a *Alarm) Fired() { a.at = 0 }
