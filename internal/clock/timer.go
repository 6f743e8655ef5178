package clock

import "time"

// muchEarlier is by how much a timer must fire too early to be worth a reset.
const muchEarlier = 200 * time.Millisecond

// Timer wakes the owner goroutine of a core no later than the core requires. Set does not reset a
// timer that fires only a little too early, because an occasional unnecessary wake-up costs less
// than a reset after every event. A Timer belongs to one goroutine.
type Timer struct {
	*time.Timer
	clock Clock
	at    Time // when the timer fires; zero means not set
}

// NewTimer returns a timer that is not set. The caller must stop the timer.
func NewTimer(c Clock) *Timer {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &Timer{Timer: t, clock: c}
}

// Set makes the timer fire at the time at, or less than 200 ms earlier. now is the time that the
// owner goroutine last read from the clock. If at is zero, Set changes nothing. Set resets a timer
// that is overdue, because a suspended machine's clock may advance although its timers do not.
func (a *Timer) Set(now, at Time) {
	if at == 0 || !at.Before(a.at) && now.Before(a.at) && at.Sub(a.at) < muchEarlier {
		return
	}
	a.at = at
	// Wait at least a millisecond, to avoid a busy loop when the owner cannot meet a deadline.
	a.Reset(max(at.Sub(a.clock.Now()), time.Millisecond))
}

// Due returns when the timer fires or has fired, or zero if it is not set.
func (a *Timer) Due() Time { return a.at }

// Fired must be called after the owner has received from the channel C.
func (a *Timer) Fired() { a.at = 0 }
