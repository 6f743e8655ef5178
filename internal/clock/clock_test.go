package clock

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestBootIsPositiveAndNeverGoesBack(t *testing.T) {
	c := Boot()
	last := c.Now()
	if last <= 0 {
		t.Fatalf("boot clock reads %d, want a positive time", last)
	}
	for range 10_000 {
		now := c.Now()
		if now.Before(last) {
			t.Fatalf("boot clock went back from %d to %d", last, now)
		}
		last = now
	}
}

func TestMonotonicFollowsTheBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Monotonic()
		before := c.Now()
		time.Sleep(time.Hour)
		if got := c.Now().Sub(before); got != time.Hour {
			t.Fatalf("after an hour of fake time the clock moved by %v", got)
		}
	})
}

func TestManualMovesOnlyWhenTold(t *testing.T) {
	var c Manual
	c.Advance(3 * time.Second)
	if got := c.Now().Sub(0); got != 3*time.Second {
		t.Fatalf("manual clock reads %v, want 3s", got)
	}
}

func TestThriftyIsNeverAhead(t *testing.T) {
	boot := Boot()
	c := NewThrifty(boot)
	last := Time(0)
	var behind []time.Duration
	for began := time.Now(); time.Since(began) < 5*thriftyFor; {
		before, now, after := boot.Now(), c.Now(), boot.Now()
		if now.After(after) || now.Before(last) {
			t.Fatalf("it reads %d after %d, between %d and %d of the clock itself", now, last, before, after)
		}
		behind = append(behind, before.Sub(now))
		last = now
	}
	// The two clocks of the kernel are one but for sleep. It is behind by as much as this goroutine was kept from running between two readings.
	slices.Sort(behind)
	if usual := behind[len(behind)/2]; usual > 100*time.Microsecond {
		t.Fatalf("it is usually %v behind", usual)
	}
}

func TestThriftyReadsOtherClocksEachTime(t *testing.T) {
	var m Manual
	c := NewThrifty(&m)
	for want := range Time(3) {
		if got := c.Now(); got != want {
			t.Fatalf("it reads %d, want %d", got, want)
		}
		m.Advance(1)
	}
}
