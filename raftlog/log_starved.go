package raftlog

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// starving measures how late the owner wakes for its ticks. Only the owner goroutine uses it.
type starving struct {
	clock.Starvation
	due clock.Time // when the timer fires; zero means not known
}

// wait waits for input or for the timer. It reports whether the timer has fired, and whether the
// owner had nothing to do from before the timer was due. Only then a late timer shows that the
// process got no processor, and not that the previous turn was long.
func (l *Log) wait(timer *time.Timer) (fired, idle bool) {
	select {
	case <-timer.C:
		return true, false
	default: // the timer is not due yet
	}
	select {
	case <-l.wake:
		return false, false
	default:
	}
	select {
	case <-timer.C:
		return true, true
	case <-l.wake:
	}
	select { // after a gap both are ready
	case <-timer.C:
		return true, true
	default:
		return false, false
	}
}

// late measures how late an idle owner has woken.
func (l *Log) late() {
	if l.starving.due == 0 {
		return
	}
	now := l.cfg.Clock.Now()
	by := now.Sub(l.starving.due)
	l.core.Late(by)
	if text := l.starving.Late(now, by); text != "" {
		l.cfg.Logger.Warn(text)
	}
}
