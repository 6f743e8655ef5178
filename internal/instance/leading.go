package instance

import (
	"sync"
	"sync/atomic"

	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// leading holds the leader as known to this instance, and the leader that was last reported to
// hooks.
type leading struct {
	attached atomic.Bool
	// The field without contains the clock.Time since which no leader is known. Zero means that a
	// leader is known, or that this instance has not looked for one yet.
	without atomic.Int64

	mu   sync.Mutex // held while the leader is read and reported; guards the fields below
	now  lead       // zero if no leader is known
	last lead       // the last value of now that was not zero
}

type lead struct {
	instance nodeid.ID // zero means none
	term     uint64
}

// look notes whether a leader is known at the time now.
func (l *leading) look(known bool, now clock.Time) {
	if known {
		l.without.Store(0)
	} else {
		l.without.CompareAndSwap(0, int64(now))
	}
}

// note stores the leader, without its term if there is none, and returns the state of the event, or
// "" if nothing has changed. The result again means that the leader is the same, and that only its
// term has become known or unknown. The caller must hold mu.
func (l *leading) note(is *lead) (state string, again bool) {
	if is.instance.IsZero() {
		is.term = 0
	}
	if *is == l.now {
		return "", false
	}
	state = stateNew
	switch {
	case is.instance.IsZero():
		state = stateNone
	case *is == l.last, is.instance == l.last.instance && (is.term == 0 || l.last.term == 0):
		state = stateAgain
	}
	again = state == stateAgain && !l.now.instance.IsZero()
	if l.now = *is; !is.instance.IsZero() {
		l.last = *is
	}
	return state, again
}
