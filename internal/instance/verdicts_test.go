package instance

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// A process that got no processor does not blame its disk, until the call has run for longer than
// any such gap explains. The disk of a process that had its processor is blamed.
func TestAStarvedProcessDoesNotBlameItsDisk(t *testing.T) {
	const now = clock.Time(time.Hour)
	for _, c := range []struct {
		what  string
		hung  time.Duration
		late  bool
		ended clock.Time
		want  bool
	}{
		{"a hanging write, never starved", 4 * time.Second, false, 0, false},
		{"a late check, never starved", 0, true, 0, false},
		{"a hanging write, starved until now", 4 * time.Second, false, now, true},
		{"a late check, starved until now", 0, true, now, true},
		{"a short write, starved until now", time.Millisecond, false, now, true},
		{"a hanging write, starved at its beginning", 4 * time.Second, false, now.Add(-4 * time.Second), true},
		{"a hanging write, starved before it", 4 * time.Second, false,
			now.Add(-diskHungAfter - diskLookEvery), false},
		{"a write that hangs for long, starved until now", diskBlamedAfter, false, now, false},
		{"nothing hangs, starved until now", 0, false, now, false},
	} {
		if got := excused(now, c.hung, c.late, c.ended); got != c.want {
			t.Errorf("%s: excused is %v", c.what, got)
		}
	}
}

// A leader that accepts no connection hands over after 3 s, and tries again each 10 s. An instance
// that does not lead never does, and has no earlier attempt when it leads.
func TestWhenALeaderHandsOver(t *testing.T) {
	var h handOvers
	const start = clock.Time(time.Hour)
	for _, c := range []struct {
		at, since time.Duration
		leads     bool
		want      bool
	}{
		{0, time.Minute, false, false},
		{0, unreachableFor - 1, true, false},
		{time.Second, unreachableFor, true, true},
		{2 * time.Second, unreachableFor + time.Second, true, false},
		{time.Second + handOverEvery - 1, time.Minute, true, false},
		{time.Second + handOverEvery, time.Minute, false, false},
		{time.Second + handOverEvery, time.Minute, true, true},
		{time.Minute, time.Second, true, false},
		{time.Minute, unreachableFor, true, true},
	} {
		if got := h.due(start.Add(c.at), c.since, c.leads); got != c.want {
			t.Errorf("at %v, for %v, leads %v: %v", c.at, c.since, c.leads, got)
		}
	}
}
