package sim

import (
	"testing"
	"time"
)

// TestProgressAfterHealing tests that only a founding may take the time of Config.silence, and that
// the longest wait is known.
func TestProgressAfterHealing(t *testing.T) {
	const silence = 12 * time.Minute
	last := func(silence time.Duration, steps ...Waited) (p progress, late bool) {
		p.silence = silence
		for _, s := range steps {
			for what := range kindsOfWaits {
				if what.String() == s.For {
					late = p.sees(p.seen, what) || p.sees(p.seen+s.Time, what) || late
				}
			}
		}
		return p, late
	}
	for _, c := range []struct {
		name    string
		silence time.Duration
		steps   []Waited
		late    bool
	}{
		{"a founding after the silence", silence,
			[]Waited{{16 * time.Minute, "a founding"}, {4 * time.Minute, "callers"}}, false},
		{"a founding that takes longer", silence, []Waited{{18 * time.Minute, "a founding"}}, true},
		{"a founding without a silence", 0, []Waited{{6 * time.Minute, "a founding"}}, true},
		{"callers after a silence", silence,
			[]Waited{{10 * time.Minute, "a founding"}, {6 * time.Minute, "callers"}}, true},
		{"callers at once", silence, []Waited{{6 * time.Minute, "callers"}}, true},
		{"voters and callers", silence,
			[]Waited{{3 * time.Minute, "callers"}, {3 * time.Minute, "changes of the voters"}}, true},
	} {
		if _, late := last(c.silence, c.steps...); late != c.late {
			t.Errorf("%s: late: %v", c.name, late)
		}
	}
	p, _ := last(silence, Waited{time.Minute, "callers"}, Waited{2 * time.Minute, "a founding"},
		Waited{time.Minute, "nothing"}, Waited{90 * time.Second, "callers"})
	if got, want := p.longest(), (Waited{150 * time.Second, "callers"}); got != want || p.took != 330*time.Second {
		t.Errorf("the longest wait is %v, and all took %v", got, p.took)
	}
}
