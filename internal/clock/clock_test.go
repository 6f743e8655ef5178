package clock

import (
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
