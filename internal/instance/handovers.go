package instance

import (
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

const (
	unreachableFor = 3 * time.Second  // an instance that accepts no connection for so long must not lead
	handOverEvery  = 10 * time.Second // time between two attempts
)

// handOvers decides when a leader that accepts no connection hands the leadership to another voter.
// Instances that are not linked to it could get no lock from it. The zero value is ready to use.
type handOvers struct {
	last clock.Time // of the last attempt; zero means none
}

// due reports whether to begin an attempt at the time now, and notes it. since is for how long no
// connection was accepted.
func (h *handOvers) due(now clock.Time, since time.Duration, leads bool) bool {
	if !leads || since < unreachableFor || h.last != 0 && now.Sub(h.last) < handOverEvery {
		return false
	}
	h.last = now
	return true
}
