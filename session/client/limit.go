package client

import (
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/clock"
)

// limit is the time at which a hold reaches its longest duration. The core and the callers of
// [Hold.Err] find that it has passed, and [Hold.Share] lifts it. Only the first of them succeeds.
// Nil is no limit.
type limit struct {
	until clock.Time
	ended atomic.Uint32 // limitPassed or limitLifted; zero while the limit counts
}

const (
	limitPassed uint32 = iota + 1
	limitLifted
)

// time returns the end of the hold, or zero if it has none.
func (l *limit) time() clock.Time {
	if l == nil || l.ended.Load() == limitLifted {
		return 0
	}
	return l.until
}

// passes reports whether the hold ends now, which must not be before the limit.
func (l *limit) passes() bool {
	return l.ended.CompareAndSwap(0, limitPassed) || l.ended.Load() == limitPassed
}

func (l *limit) lift() bool { return l == nil || l.ended.CompareAndSwap(0, limitLifted) }

// holdLimits are the ends of a hold beside that of its lease. Its fields may be nil.
type holdLimits struct {
	limit *limit
	idle  *idle // that of an upgrade is its hold's
	beats *beats
}
