package instance

import (
	"sync"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// grantable measures for how long the group could grant locks to this instance. begin must be
// called first.
type grantable struct {
	mu    sync.Mutex // guards the fields below
	began clock.Time
	since clock.Time // the start, or the last change of the state
	can   bool
	total time.Duration // how long locks could be granted before that change
}

func (g *grantable) begin(now clock.Time) { g.began, g.since = now, now }

// set reports whether the state has changed, and how long the previous state has lasted.
func (g *grantable) set(now clock.Time, can bool) (lasted time.Duration, changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if can == g.can {
		return 0, false
	}
	lasted = now.Sub(g.since)
	if g.can {
		g.total += lasted
	}
	g.can, g.since = can, now
	return lasted, true
}

func (g *grantable) share(now clock.Time) (age, granted time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	granted = g.total
	if g.can {
		granted += now.Sub(g.since)
	}
	return now.Sub(g.began), granted
}
