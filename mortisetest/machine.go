package mortisetest

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// machine is the boot-time clock of a node's machine. It follows package time, also in a bubble,
// and continues to run when the node ends. While hidden is true, Now always returns the same
// time, so that the node behaves like a stopped program.
type machine struct {
	mu     sync.Mutex // guards the fields below
	since  time.Time
	base   clock.Time // the reading of this clock at the time in since
	rate   float64
	hidden bool
	seen   clock.Time // what Now returns while hidden is true
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

// now returns the time of the clock. The caller must hold mu.
func (m *machine) now() clock.Time {
	return m.base.Add(time.Duration(float64(time.Since(m.since)) * m.rate))
}

// maxLeap bounds the reading after a leap, because a clock of 292 years has reached its end, and
// would stand still.
const maxLeap = clock.Time(200 * 365 * 24 * time.Hour)

func (m *machine) leap(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base = max(m.base, min(m.base.Add(d), maxLeap))
}

func (m *machine) run(rate float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.base, m.since, m.rate = m.now(), time.Now(), rate
}

// hide(true) stops the time that Now returns, and hide(false) lets it continue.
func (m *machine) hide(hidden bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.hidden = m.now(), hidden
}
