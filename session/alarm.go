package session

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// alarm wakes a goroutine at the latest at a time of its core's, which moves with nearly every turn and nearly always to a later one. It
// leaves a timer alone that is set early enough: one turn too many now and then costs less than a clock and a timer in each.
type alarm struct {
	*time.Timer
	clock clock.Clock
	at    clock.Time // when it rings; zero: it does not
}

// newAlarm returns an alarm that is not set. The owner must stop it.
func newAlarm(c clock.Clock) *alarm {
	t := time.NewTimer(time.Hour)
	t.Stop()
	return &alarm{Timer: t, clock: c}
}

// set makes it ring at that time or before; zero: not at all, or before. now is the time of the turn. A machine that was suspended has a clock
// that went on and a timer that stood still: what should have rung long ago is set anew.
func (a *alarm) set(now, at clock.Time) {
	if at == 0 || !at.Before(a.at) && now.Before(a.at) {
		return
	}
	a.at = at
	// At least a millisecond, so that a deadline which a turn could not meet never becomes a loop.
	a.Reset(max(at.Sub(a.clock.Now()), time.Millisecond))
}

// rung says that it has rung.
func (a *alarm) rung() { a.at = 0 }
