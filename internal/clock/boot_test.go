//go:build linux || darwin || windows

package clock

import (
	"testing"
	"time"
)

func TestBootReadsTheClockOfTheSystem(t *testing.T) {
	if c, is := Boot().(monotonic); is {
		t.Fatalf("Boot returned %T: the system's clock that counts sleep was not found", c)
	}
}

// TestBootCountsNanoseconds compares the unit and the rate of the boot-time clock with those of
// Go's monotonic clock. Either may read the time of its last tick, up to 16 ms ago.
func TestBootCountsNanoseconds(t *testing.T) {
	const tick = 20 * time.Millisecond
	c := Boot()
	outer := time.Now()
	first := c.Now()
	inner := time.Now()
	time.Sleep(200 * time.Millisecond)
	atLeast := time.Since(inner) - tick
	passed := c.Now().Sub(first)
	atMost := time.Since(outer) + tick
	if passed < atLeast || passed > atMost {
		t.Fatalf("the boot-time clock counted %v, want %v to %v (was the machine suspended?)", passed, atLeast, atMost)
	}
}
