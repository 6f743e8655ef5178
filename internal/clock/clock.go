// Package clock provides the clock of leases. It counts the nanoseconds since the machine booted.
//
// The clock of a lease must not be adjusted and must not stop. The wall clock is adjusted. Go's
// monotonic clock stops while a machine is suspended, so a holder that was suspended past its
// expiry would consider its lock valid afterwards. [Boot] includes suspended time: it follows
// CLOCK_BOOTTIME on Linux, CLOCK_MONOTONIC_RAW on macOS, and QueryInterruptTimePrecise on Windows.
// On other systems, it reads Go's monotonic clock. After a suspension, a lease then seems valid for
// too long, by the duration of the suspension, and only fencing tokens protect the resource.
//
// Guarantees: a Time of one Clock never decreases until the machine boots again. On Linux it is
// late by at most 40 µs. Times of different machines are not comparable, and no rule of mortise
// compares them. The rates of clocks are assumed to differ by at most 1 %.
//
// Concurrency: every Clock is safe for concurrent use.
//
// Failure: on any Linux that runs Go, reading the boot-time clock cannot fail. If it cannot be read
// on macOS or Windows, Boot reads Go's monotonic clock, as on other systems.
//
// Limits: 292 years since the boot. The code for macOS and Windows was written from the manuals of
// these systems. What has run on them is in the section on assumptions of docs/GUARANTEES.md.
//
// Refused alternative: a clock interface with timers. The owner goroutine of a core waits with an
// ordinary timer, and decides by the clock that it reads when it wakes. So a late or early timer
// delays a decision but never makes it wrong. Also refused: on Linux, a system call for each
// reading. It costs three times as much, and every grant of a kept lock and every Unlock of it read
// the clock. macOS and Windows have no such cheaper reading.
package clock

import (
	"math"
	"sync"
	"time"
)

// Time is a point on the boot-time clock of one machine, in nanoseconds since an origin that is
// fixed until the next boot. A running clock never returns zero, so zero can stand for "never".
type Time int64

// Add returns the time that is d later than t, or the last or the first Time if that is out of
// range. So the longest duration does not end in the past.
func (t Time) Add(d time.Duration) Time {
	sum := t + Time(d)
	switch {
	case d > 0 && sum < t:
		return math.MaxInt64
	case d < 0 && sum > t:
		return math.MinInt64
	}
	return sum
}

// Sub returns the time elapsed from u to t, or the longest or the shortest duration if that is out
// of range.
func (t Time) Sub(u Time) time.Duration {
	d := time.Duration(t - u)
	switch {
	case d < 0 && t > u:
		return math.MaxInt64
	case d > 0 && t < u:
		return math.MinInt64
	}
	return d
}

// Before reports whether t is before u.
func (t Time) Before(u Time) bool { return t < u }

// After reports whether t is after u.
func (t Time) After(u Time) bool { return t > u }

// Clock returns the current time. An implementation must be safe for concurrent use, and cheap,
// because every call of Lock.Err reads it.
type Clock interface {
	Now() Time
}

// Boot returns the clock of leases: the boot-time clock of Linux, macOS or Windows, and Go's
// monotonic clock elsewhere.
func Boot() Clock { return boot() }

// Monotonic returns a clock that follows Go's monotonic clock. Its origin is one hour before the
// call, so that its values are positive. Inside a testing/synctest bubble it is the bubble's clock.
func Monotonic() Clock { return monotonic{origin: time.Now().Add(-time.Hour)} }

type monotonic struct{ origin time.Time }

func (m monotonic) Now() Time { return Time(time.Since(m.origin)) }

// Manual is a clock for tests. Only Advance advances it. The zero value starts at zero and is ready
// to use.
type Manual struct {
	mu  sync.Mutex // guards now
	now Time
}

// Now returns the current time of m.
func (m *Manual) Now() Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now
}

// Advance moves the clock by d.
func (m *Manual) Advance(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now = m.now.Add(d)
}
