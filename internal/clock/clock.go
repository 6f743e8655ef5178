// Package clock is the clock of leases: nanoseconds since the machine booted.
//
// A lease is a promise about elapsed time, so it must be measured by a clock that nobody sets and
// that does not stop. The wall clock is set; Go's monotonic clock stops while a machine is
// suspended, and a holder that slept through its own expiry would believe in its lock when it woke.
// On Linux [Boot] reads CLOCK_BOOTTIME, which counts suspended time too. Elsewhere it falls back to
// Go's monotonic clock: there a suspended machine can believe in a lease for as long as it slept,
// and only fencing tokens protect the resource. The README says so.
//
// Guarantees: a Time never goes back within one machine and one boot. Times of two machines have
// nothing to do with each other, and no rule of mortise compares them; clocks are assumed to run at
// rates at most 1% apart.
//
// Concurrency: every Clock is safe for concurrent use.
//
// Failure: reading the boot-time clock cannot fail on a Linux that runs Go.
//
// Limits: 292 years of uptime.
//
// Refused alternative: a full clock interface with timers. Shells wait with ordinary timers, which
// testing/synctest fakes, and decide by the value read when they wake; so a late or early timer can
// delay a decision but never falsify one.
package clock

import (
	"sync"
	"time"
)

// Time is a point on the boot-time clock of one machine, in nanoseconds since an origin that is
// fixed until the next boot. The zero value is that origin and never comes from a running clock, so
// it can stand for "never".
type Time int64

// Add returns t moved by d.
func (t Time) Add(d time.Duration) Time { return t + Time(d) }

// Sub returns the time elapsed from u to t.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t - u) }

// Before reports whether t lies before u.
func (t Time) Before(u Time) bool { return t < u }

// After reports whether t lies after u.
func (t Time) After(u Time) bool { return t > u }

// Clock tells the time. Implementations are safe for concurrent use and cheap enough to be read at
// every call of Lock.Err.
type Clock interface {
	Now() Time
}

// Boot returns the clock that leases are measured by: CLOCK_BOOTTIME on Linux, Go's monotonic clock
// elsewhere.
func Boot() Clock { return boot() }

// Monotonic returns a clock that follows Go's monotonic clock from an origin one hour before the
// call, so that its values are positive. Inside a testing/synctest bubble it is the bubble's clock.
func Monotonic() Clock { return monotonic{origin: time.Now().Add(-time.Hour)} }

type monotonic struct{ origin time.Time }

func (m monotonic) Now() Time { return Time(time.Since(m.origin)) }

// Manual is a clock that moves only when it is told to, for tests. The zero value stands at zero
// and is ready to use.
type Manual struct {
	mu  sync.Mutex // guards now
	now Time
}

// Now returns the time that was set last.
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
