package mortisetest

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// machine has the boot-time clock of the machine on which a node runs. It outlives the node, as a
// machine does. The clock follows package time, so a bubble's clock inside of one; it can leap, run
// fast or slow, and be hidden: a program that is stopped does not see it move.
type machine struct {
	mu     sync.Mutex // guards all below
	since  time.Time
	base   clock.Time // what the clock showed then
	rate   float64
	hidden bool
	seen   clock.Time // what the program saw last, while the clock is hidden
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

// now is what the clock shows; the caller holds mu.
func (m *machine) now() clock.Time {
	return m.base.Add(time.Duration(float64(time.Since(m.since)) * m.rate))
}

// leap moves the clock forward at once.
func (m *machine) leap(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base = m.base.Add(d)
}

// run lets the clock go on at another rate.
func (m *machine) run(rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base, m.since, m.rate = m.now(), time.Now(), rate
}

// hide stops what the program sees of the clock; with false it sees where the clock has come to
// meanwhile.
func (m *machine) hide(hidden bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.hidden = m.now(), hidden
}
