package clock

import (
	"math"
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

func TestTimesDoNotWrap(t *testing.T) {
	const first, last = Time(math.MinInt64), Time(math.MaxInt64)
	for _, c := range []struct {
		t    Time
		d    time.Duration
		want Time
	}{
		{0, math.MaxInt64, last}, {1, math.MaxInt64, last}, {last, 1, last}, {last, math.MaxInt64, last},
		{last - 1, 1, last}, {last, -1, last - 1}, {last, math.MinInt64, -1},
		{0, math.MinInt64, first}, {-1, math.MinInt64, first}, {first, -1, first}, {first, 1, first + 1},
		{first, math.MaxInt64, -1}, {5, 0, 5}, {5, -7, -2},
	} {
		if got := c.t.Add(c.d); got != c.want {
			t.Errorf("%d + %d = %d, want %d", c.t, c.d, got, c.want)
		}
	}
	for _, c := range []struct {
		t, u Time
		want time.Duration
	}{
		{last, first, math.MaxInt64}, {first, last, math.MinInt64}, {last, -1, math.MaxInt64},
		{-2, last, math.MinInt64}, {first, 1, math.MinInt64}, {last, 0, math.MaxInt64}, {0, first, math.MaxInt64},
		{-1, first, math.MaxInt64}, {5, 7, -2}, {last, last, 0},
	} {
		if got := c.t.Sub(c.u); got != c.want {
			t.Errorf("%d - %d = %d, want %d", c.t, c.u, got, c.want)
		}
	}
}
