package clock

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// machine is a source for tests. Between two readings it runs for some time, and may do more.
type machine struct {
	random          *rand.Rand
	wall, monotonic time.Duration
	suspended       time.Duration
	interrupted     float64
	events          bool
	readings        int    // of the boot-time clock
	meanwhile       func() // another goroutine, between two readings
}

func (m *machine) run(d time.Duration) {
	m.wall += d
	m.monotonic += d
}

func (m *machine) suspend(d time.Duration) {
	m.wall += d
	m.suspended += d
}

func (m *machine) true() Time { return Time(m.monotonic + m.suspended) }

// mayInterrupt runs for a time below d, or much longer.
func (m *machine) mayInterrupt(d time.Duration) {
	if m.random.Float64() < m.interrupted {
		d *= 100_000
	}
	m.run(time.Duration(m.random.Int64N(int64(d))))
}

// between is what happens between two readings.
func (m *machine) between() {
	m.mayInterrupt(200)
	if !m.events {
		return
	}
	if m.meanwhile != nil {
		m.meanwhile()
	}
	switch m.random.IntN(40) {
	case 0:
		m.suspend(time.Duration(m.random.Int64N(int64(time.Hour))))
	case 1: // the wall clock is set
		m.wall += time.Duration(m.random.Int64N(int64(time.Hour))) - 30*time.Minute
	case 2: // the wall clock is set by little
		m.wall += time.Duration(m.random.IntN(50_000)) // set back, it would hide a suspension
	case 3:
		m.suspend(time.Duration(m.random.IntN(50_000)))
	}
}

func (m *machine) cheap() (wall, monotonic time.Duration) {
	m.between()
	wall = m.wall
	m.mayInterrupt(50)
	return wall, m.monotonic
}

func (m *machine) boot() Time {
	m.between()
	m.readings++
	return m.true()
}

// A derived clock follows the boot-time clock, whatever happens between its readings.
func TestDerivedFollowsTheBootTime(t *testing.T) {
	seeds := uint64(2000)
	if slow.Race && testing.Short() {
		seeds = 300
	}
	for seed := range seeds {
		m := &machine{random: rand.New(rand.NewPCG(seed, 1)), monotonic: time.Second, wall: 50 * 365 * 24 * time.Hour}
		m.interrupted = []float64{0, 0.1, 0.9}[seed%3]
		d := newDerived(m)
		m.events = true
		var last, other Time
		m.meanwhile = func() {
			if m.random.IntN(4) == 0 && d.mu.TryLock() {
				d.mu.Unlock()
				meanwhile := m.meanwhile
				m.meanwhile = nil
				other = max(other, d.Now())
				m.meanwhile = meanwhile
			}
		}
		for i := range 300 {
			before := m.true()
			now := d.Now()
			if late := before.Sub(now); late > 2*unsteady {
				t.Fatalf("seed %d, step %d: the clock is late by %v", seed, i, late)
			}
			if now > m.true() {
				t.Fatalf("seed %d, step %d: the clock is ahead by %v", seed, i, now.Sub(m.true()))
			}
			if now < last {
				t.Fatalf("seed %d, step %d: the clock went back by %v", seed, i, last.Sub(now))
			}
			last = max(now, other)
		}
	}
}

// The boot-time clock itself is read only after an event.
func TestDerivedReadsTheBootTimeRarely(t *testing.T) {
	m := &machine{random: rand.New(rand.NewPCG(1, 1)), monotonic: time.Second}
	d := newDerived(m)
	had := m.readings
	for range 10_000 {
		d.Now()
	}
	if m.readings != had {
		t.Fatalf("the boot-time clock was read %d times", m.readings-had)
	}
	m.suspend(time.Minute)
	d.Now()
	if m.readings != had+1 {
		t.Fatalf("after a suspension the boot-time clock was read %d times, want once", m.readings-had)
	}
}
