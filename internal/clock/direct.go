package clock

import (
	"sync/atomic"
	"time"
)

// direct reads the boot-time clock of the system at each call. It is for systems on which a
// derived clock would save nothing.
//
// It never decreases, even if the system's clock does. If the system's clock fails later, direct
// continues at the rate of Go's monotonic clock, from the time that the system's clock would have
// shown if there was no sleep since the last call.
type direct struct {
	read   func() (now Time, ok bool)
	origin time.Time    // of Go's monotonic clock
	ahead  atomic.Int64 // the highest known time of read, minus the time since the origin
	last   atomic.Int64 // the highest time that Now has returned
}

// newDirect returns a clock that calls read, or the clock of [Monotonic] if read fails already.
func newDirect(read func() (now Time, ok bool)) Clock {
	if now, ok := read(); !ok || now <= 0 {
		return Monotonic()
	}
	d := &direct{read: read, origin: time.Now()}
	d.Now()
	return d
}

// Now implements Clock.
func (d *direct) Now() Time {
	now, ok := d.read()
	since := time.Since(d.origin)
	if ok {
		raise(&d.ahead, now.Add(-since))
	} else {
		now = Time(d.ahead.Load()).Add(since)
	}
	return raise(&d.last, now)
}

// raise stores t in a if t is higher, and returns the content of a.
func raise(a *atomic.Int64, t Time) Time {
	for {
		old := a.Load()
		if t <= Time(old) {
			return Time(old)
		}
		if a.CompareAndSwap(old, int64(t)) {
			return t
		}
	}
}
