package client

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/lockfsm"
)

func TestADelayIsNeverShorter(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Millisecond + 1: 2 * time.Millisecond,
		lockfsm.MaxDelay - 1: lockfsm.MaxDelay, lockfsm.MaxDelay: lockfsm.MaxDelay,
	} {
		if got := WholeDelay(d); got != want {
			t.Errorf("%v becomes %v", d, got)
		}
	}
}
