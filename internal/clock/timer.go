package clock

import "time"

// Timer wakes an owner goroutine no later than its core asks for. Nearly every turn moves the
// core's deadline, mostly to a later time. So Set does not touch a timer that fires early enough:
// an occasional superfluous turn costs less than a clock reading and a timer reset in each turn. An
// Timer belongs to one goroutine.
type Timer struct {
	*time.Timer
	clock Clock
	at    Time // when the timer fires; zero means it is not set
}

// NewTimer returns an alarm that is not set. The caller must stop it.
func NewTimer(c Clock) *Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Timer{Timer: t, clock: c}
}

// Set makes the alarm fire at the given time or earlier; now is the time of the turn. A zero time
// changes nothing. While a machine is suspended its clock may advance and its timers may not. So an
// alarm that is overdue is set again.
func (a *Timer) Set(now, at Time) {
	if at == 0 || !at.Before(a.at) && now.Before(a.at) {
		return
	}
	a.at = at
	// At least a millisecond, so that a deadline that a turn cannot meet does not cause a busy
	// loop.
	a.Reset(max(at.Sub(a.clock.Now()), time.Millisecond))
}

// Fired must be called after the owner has received from C.
func (a *Timer) Fired() { a.at = 0 }
