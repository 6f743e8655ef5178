package replica

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/clock"
)

// TestWhatIsLostIsAskedForAgain checks that a leader makes its proposal immediately in each of its
// terms, and again every second until the proposed settings are in force.
func TestWhatIsLostIsAskedForAgain(t *testing.T) {
	five := groupOf(func(g *Settings) { g.Voters = 5 })
	var g SessionIndex
	for _, r := range registeredAs(five, five) {
		g.census.add(&r)
	}
	var a SettingsAgreement
	group := groupOf(nil)
	stand := Stand{Term: 3, Group: &group, Own: Own{Settings: five}, Rules: 0}
	for i, step := range []struct {
		at   time.Duration
		term uint64
		asks bool
	}{
		{0, 3, true}, {10 * time.Millisecond, 3, false}, {999 * time.Millisecond, 3, false}, {time.Second, 3, true},
		{1500 * time.Millisecond, 3, false}, {1600 * time.Millisecond, 4, true}, {1700 * time.Millisecond, 4, false},
	} {
		stand.Term = step.term
		w := a.proposals(clock.Time(time.Hour+step.at), stand, &g, nil)
		if asks := w.Adopt != nil; asks != step.asks || asks != (w.Raise != 0) || asks && w.Adopt.Voters != 5 {
			t.Errorf("step %d: %+v, want a proposal: %v", i, w, step.asks)
		}
		if len(w.Differ) == 0 {
			t.Errorf("step %d: no differing settings are reported", i)
		}
	}
	stand.Group, stand.Rules = &five, 1
	if w := a.proposals(clock.Time(2*time.Hour), stand, &g, nil); w.Adopt != nil || w.Raise != 0 || len(w.Differ) != 0 {
		t.Errorf("proposed what is in force: %+v", w)
	}
}
