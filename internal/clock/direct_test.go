package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

// inBubble calls test in a bubble, with a clock of a system that reads the bubble's clock plus
// slept. It fails while failing is true.
func inBubble(t *testing.T, test func(t *testing.T, d Clock, slept *time.Duration, failing *bool)) {
	synctest.Test(t, func(t *testing.T) {
		origin := time.Now().Add(-time.Minute)
		var slept time.Duration
		var failing bool
		d := newDirect(func() (Time, bool) { return Time(time.Since(origin) + slept), !failing })
		if got := d.Now(); got != Time(time.Minute) {
			t.Fatalf("the clock reads %v first, want 1m", time.Duration(got))
		}
		test(t, d, &slept, &failing)
	})
}

func TestDirectCountsSleep(t *testing.T) {
	inBubble(t, func(t *testing.T, d Clock, slept *time.Duration, _ *bool) {
		*slept += time.Hour
		time.Sleep(time.Second)
		if got, want := d.Now(), Time(time.Minute+time.Hour+time.Second); got != want {
			t.Fatalf("the clock reads %v, want %v", time.Duration(got), time.Duration(want))
		}
	})
}

func TestDirectNeverDecreases(t *testing.T) {
	inBubble(t, func(t *testing.T, d Clock, slept *time.Duration, _ *bool) {
		*slept -= 10 * time.Second
		time.Sleep(time.Second)
		if got := d.Now(); got != Time(time.Minute) {
			t.Fatalf("after a step back, the clock reads %v, want 1m", time.Duration(got))
		}
		time.Sleep(10 * time.Second)
		if got := d.Now(); got != Time(time.Minute+time.Second) {
			t.Fatalf("the clock reads %v, want 1m1s", time.Duration(got))
		}
	})
}

// A failure of the system's clock stops nothing, and loses no sleep before it.
func TestDirectOutlivesTheClockOfTheSystem(t *testing.T) {
	inBubble(t, func(t *testing.T, d Clock, slept *time.Duration, failing *bool) {
		*slept += time.Hour
		d.Now()
		*failing = true
		time.Sleep(2 * time.Second)
		if got, want := d.Now(), Time(time.Minute+time.Hour+2*time.Second); got != want {
			t.Fatalf("without the system's clock it reads %v, want %v", time.Duration(got), time.Duration(want))
		}
	})
}

func TestNoClockOfTheSystem(t *testing.T) {
	for name, read := range map[string]func() (Time, bool){
		"fails": func() (Time, bool) { return 5, false },
		"zero":  func() (Time, bool) { return 0, true }, // zero means "never"
	} {
		if c, is := newDirect(read).(monotonic); !is {
			t.Errorf("%s: got %T, want Go's monotonic clock", name, c)
		}
	}
}
