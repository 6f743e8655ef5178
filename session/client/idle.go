package client

import (
	"sync/atomic"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// MinIdle is the shortest useful Terms.Idle. A process can be paused for a shorter time although
// nothing is wrong.
const MinIdle = 100 * time.Millisecond

// idle ends a hold whose holder has stopped beating. A beat only adds to a counter. The core
// compares the counter at every quarter of the longest time without a beat. A stored time of the
// last beat would need a clock, and would move back if its goroutine was paused between reading the
// clock and storing.
//
// The core and the callers of [Hold.Err] find that the time has passed. The first of them decides,
// and a later beat changes nothing. Nil means no such end.
type idle struct {
	longest time.Duration
	beats   *beats
	seen    atomic.Uint64 // beats at the last check that found another number
	until   atomic.Int64  // when the hold ends if beats is still seen; zero from a change until the next turn
	ended   atomic.Int64  // when the hold has ended; zero while it has not
	next    clock.Time    // the next check
}

// beats counts the beats of a hold.
type beats struct{ n atomic.Uint64 }

func (b *beats) read() uint64 { return b.n.Load() }

func newIdle(now clock.Time, longest time.Duration, beats *beats) *idle {
	i := &idle{longest: longest, beats: beats}
	i.seen.Store(beats.read())
	i.counts(now)
	return i
}

// counts begins the time without a beat. All beats that were seen are older than now.
func (i *idle) counts(now clock.Time) {
	i.until.Store(int64(now.Add(i.longest)))
	i.next = now.Add(i.quarter())
}

func (i *idle) quarter() time.Duration { return max(i.longest/4, 1) }

// end returns when the hold has ended for want of a beat, or zero if it had not at the time now.
// The order matters: read first the time now, then seen, then until, and then beats. See check.
func (i *idle) end(now clock.Time) clock.Time {
	if i == nil {
		return 0
	}
	if ended := i.ended.Load(); ended != 0 {
		return clock.Time(ended)
	}
	seen, until := i.seen.Load(), i.until.Load()
	if until == 0 || now.Before(clock.Time(until)) || i.beats.read() != seen {
		return 0
	}
	i.ended.CompareAndSwap(0, until)
	return clock.Time(i.ended.Load())
}

// check compares the counter at the time now, which was read before. A beat that it finds may be
// later than now, if the process was paused in between. So the time without a beat begins in the
// next turn, which has read the clock again.
func (i *idle) check(now clock.Time) {
	beats := i.beats.read()
	switch {
	case i.until.Load() == 0:
		i.counts(now)
	case beats != i.seen.Load():
		i.until.Store(0) // before seen; see end
		i.seen.Store(beats)
		i.next = now.Add(1)
	default:
		i.next = min(now.Add(i.quarter()), clock.Time(i.until.Load()))
	}
}

// since returns the time since a check has found a new beat, or zero if there was one since.
func (i *idle) since(now clock.Time) time.Duration {
	seen, until := i.seen.Load(), i.until.Load() // in this order; see end
	if until == 0 || i.beats.read() != seen {
		return 0
	}
	return max(now.Sub(clock.Time(until).Add(-i.longest)), 0)
}
