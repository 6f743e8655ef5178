package clock

import (
	"sync"
	"sync/atomic"
	"time"
)

// derived calculates the boot-time clock from clocks that are cheaper to read. On Linux, Go reads
// the wall clock and the monotonic clock without a system call, but not the boot-time clock.
//
// The boot-time clock is the monotonic clock plus the time for which the machine was suspended. A
// suspension also moves the wall clock against the monotonic clock. So while the difference of
// these two is unchanged, the time of suspensions is unchanged, too. To hide a suspension, the wall
// clock must be set back by exactly its duration before the next call of Now.
//
// A derived clock is late by at most 40 µs, is never ahead, and never decreases.
type derived struct {
	source source
	base   atomic.Pointer[base]
	mu     sync.Mutex // for the replacement of base
}

// source reads the clocks of a machine. The monotonic clock of a source begins with the source.
type source interface {
	cheap() (wall, monotonic time.Duration)
	boot() Time
}

// base is what the clocks showed when the boot-time clock was last read.
type base struct {
	ahead time.Duration // wall clock minus monotonic clock
	boot  Time          // boot-time clock minus monotonic clock, rounded down
	valid bool          // false: ahead and boot may be of different moments
}

// unsteady is how far a base may be wrong, and how far the clocks may have moved against each other
// since. They are read one after the other, so their differences vary by less than a microsecond,
// and by more if the thread is interrupted.
const unsteady = 20 * time.Microsecond

func newDerived(s source) *derived {
	d := &derived{source: s}
	d.base.Store(&base{})
	d.renew()
	return d
}

// Now implements Clock.
func (d *derived) Now() Time {
	b := d.base.Load()
	wall, monotonic := d.source.cheap()
	if !b.valid || !near(wall-monotonic, b.ahead) {
		return d.renew()
	}
	return b.boot.Add(monotonic)
}

func near(a, b time.Duration) bool { return a-b < unsteady && b-a < unsteady }

// renew reads the boot-time clock. If the thread is interrupted each time, the result is correct
// but serves only this call.
func (d *derived) renew() Time {
	const attempts = 4
	d.mu.Lock()
	defer d.mu.Unlock()
	next := *d.base.Load()
	var now time.Duration
	for range attempts {
		wall, began := d.source.cheap()
		boot := d.source.boot()
		wallAfter, ended := d.source.cheap()
		// The difference of the two clocks only grows. The highest of its lower bounds lets the time
		// never decrease.
		next.boot = max(next.boot, boot.Add(-ended))
		next.ahead, now = wall-began, ended
		if next.valid = ended-began < unsteady && near(wallAfter-ended, next.ahead); next.valid {
			break
		}
	}
	d.base.Store(&next)
	return next.boot.Add(now)
}
