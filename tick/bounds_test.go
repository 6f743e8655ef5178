package tick

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

func TestANameAtItsBound(t *testing.T) {
	limits.AtMost(t, "maxName", maxName, func(n int) bool {
		_, err := Job{Name: strings.Repeat("n", n), Schedule: Every(time.Minute),
			Run: func(context.Context, Tick) error { return nil }}.withDefaults()
		return err == nil
	})
}

// The ticks that have passed are walked through up to maxMissed, and are found at once above it.
func TestMissedTicksAtTheirBound(t *testing.T) {
	began := at("10:00:00")
	limits.AtMost(t, "maxMissed", maxMissed, func(n int) bool {
		p := plan{schedule: Every(time.Minute), late: 5 * time.Second, settled: began}
		now := began.Add(time.Duration(n)*time.Minute + 30*time.Second)
		w, err := p.next(now)
		if err != nil || !w.at.Equal(now.Add(30*time.Second)) {
			t.Errorf("after %d missed ticks: %+v, %v", n, w, err)
		}
		return w.missed == n
	})
}
