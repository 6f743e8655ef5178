package mortisetest

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// machine is the boot-time clock of the machine of a node, and outlives the node. The clock follows
// package time, in a bubble the bubble's. It can leap, run fast or slow, and be hidden: a stopped
// program does not see it move.
type machine struct {
	mu     sync.Mutex // guards all below
	since  time.Time
	base   clock.Time // what the clock showed at since
	rate   float64
	hidden bool
	seen   clock.Time // the last time that the program saw, while the clock is hidden
}

func newMachine() *machine { return &machine{since: time.Now(), base: clock.Time(time.Hour), rate: 1} }

// Now implements clock.Clock.
func (m *machine) Now() clock.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hidden {
		return m.seen
	}
	return m.now()
}

// now returns the time of the clock; the caller holds mu.
func (m *machine) now() clock.Time {
	return m.base.Add(time.Duration(float64(time.Since(m.since)) * m.rate))
}

// leap moves the clock forward at once.
func (m *machine) leap(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base = m.base.Add(d)
}

// run sets the rate of the clock.
func (m *machine) run(rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base, m.since, m.rate = m.now(), time.Now(), rate
}

// hide freezes the time that the program sees; with false the program sees the true time again.
func (m *machine) hide(hidden bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.hidden = m.now(), hidden
}
