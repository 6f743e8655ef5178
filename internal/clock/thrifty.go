package clock

import "time"

// Thrifty is a clock for one goroutine that wants to know the time in each of its turns. To read the boot-time clock is a call into the
// kernel, which costs as much as to carry out a command of a lock; so it is read once in a millisecond, and between two readings Go's
// monotonic clock says how much has passed, at a tenth of the cost.
//
// It is never ahead of the clock that it reads, and behind it only by what the machine has slept, for the first millisecond after it woke.
// That is safe for whoever asks for a lease: he counts it from a moment before he asked. It is not for who grants one, and would end it too early
// once the clock is right again; nor for who asks whether a lease is over. They read the clock itself. Other clocks than that of [Boot] are read
// each time.
//
// It is not safe for concurrent use.
type Thrifty struct {
	clock Clock
	boot  bool
	at    Time      // the last reading
	read  time.Time // right after it
}

// thriftyFor is how long one reading is enough.
const thriftyFor = time.Millisecond

// NewThrifty returns a thrifty way to read c.
func NewThrifty(c Clock) *Thrifty { return &Thrifty{clock: c, boot: c == Boot()} }

// Now returns the time.
func (t *Thrifty) Now() Time {
	if !t.boot {
		return t.clock.Now()
	}
	passed := time.Since(t.read)
	if t.at == 0 || passed >= thriftyFor {
		t.at, t.read = t.clock.Now(), time.Now()
		return t.at
	}
	return t.at.Add(passed)
}
