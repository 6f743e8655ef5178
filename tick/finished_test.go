package tick_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/tick"
)

var _ tick.Store = (*mortise.Node)(nil)

type store struct {
	mu       sync.Mutex // guards the fields below
	data     []byte
	revision uint64
	fails    error
	conflict int // the number of Puts that fail with a conflict
}

func (s *store) Get(ctx context.Context, _ string) ([]byte, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data, s.revision, errors.Join(s.fails, ctx.Err())
}

func (s *store) Put(ctx context.Context, _ string, data []byte, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conflict > 0 {
		s.conflict--
		s.revision++
	}
	switch {
	case s.fails != nil:
		return 0, s.fails
	case revision != s.revision:
		return 0, mortise.ErrConflict
	}
	s.data, s.revision = data, revision+1
	return s.revision, ctx.Err()
}

func TestLeavingAfterTheJobTakesNoTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.store = &store{conflict: 2}
		c.until(30)
		a, b, d := c.join("a", 2*time.Second), c.join("b", time.Second), c.join("d", 0)
		c.until(60.5)
		a.Leave()
		if <-a.ended; !errors.Is(a.err, mortise.ErrLeaving) || a.after != 60500*time.Millisecond {
			t.Errorf("it returned %v after %v, want at once", a.err, a.after)
		}
		c.until(61)
		b.Leave() // b now holds the lock of the tick, which is finished
		if <-b.ended; b.after != 61*time.Second {
			t.Errorf("the second returned after %v, want at once", b.after)
		}
		c.until(90)
		c.ran("a@60: 58-59")
		c.until(130)
		c.ran("a@60: 58-59", "d@120: 120-121")
		c.end(a, b, d)
	})
}

func TestACrashAfterARecordedJobRunsNothingAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.job.Late = 20 * time.Second
		c.store = &store{}
		c.until(30)
		a, b, d := c.join("a", 2*time.Second), c.join("b", time.Second), c.join("d", 0)
		c.until(60)
		a.Crash(10 * time.Second)
		c.until(90)
		c.ran("a@60: 58-59")
		c.until(119.5)
		b.Crash(10 * time.Second)
		c.until(150)
		c.ran("a@60: 58-59", "b@120: 119-119.5", "d@120: 129.5-130.5")
		c.end(a, b, d)
	})
}

func TestATickThatIsNotRecordedIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, 2*time.Second)
		c.store = &store{}
		c.until(30)
		a, b := c.join("a", time.Second), c.join("b", 0)
		c.until(60)
		c.store.mu.Lock()
		c.store.fails = mortise.ErrNoRoom
		c.store.mu.Unlock()
		c.until(62)
		a.Leave()
		if <-a.ended; a.after != 69*time.Second {
			t.Errorf("it returned after %v, want when the tick is free by its clock", a.after)
		}
		c.until(100)
		c.ran("a@60: 59-61")
		c.end(a, b)
	})
}

// A clock that is an hour ahead must not make earlier ticks count as finished.
func TestAFarClockFinishesItsOwnTicksOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := newCrew(t, time.Minute, time.Second)
		c.store = &store{}
		c.until(30)
		a, b := c.join("far", time.Hour), c.join("b", 0)
		c.until(1570)
		c.mu.Lock()
		runs := strings.Join(c.runs, ", ")
		c.mu.Unlock()
		if !strings.Contains(runs, "far@4320: ") || !strings.Contains(runs, "b@1560: ") {
			t.Errorf("ran %s", runs)
		}
		c.store.mu.Lock()
		if n := len(strings.Fields(string(c.store.data))); n != 16 {
			t.Errorf("%d ticks are recorded: %s", n, c.store.data)
		}
		c.store.mu.Unlock()
		c.end(a, b)
	})
}
