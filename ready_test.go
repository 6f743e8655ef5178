package mortise

import "testing"

// TestWhenReadyMayEndEarly lists what a leader may have said when Ready has waited for long.
func TestWhenReadyMayEndEarly(t *testing.T) {
	for name, c := range map[string]struct {
		last *unsettled
		want bool
	}{
		"no leader has answered":                      {nil, false},
		"a voter is silent":                           {&unsettled{why: "no contact"}, true},
		"a voter that lost its directory is replaced": {&unsettled{why: "asked", renewing: true}, false},
	} {
		if got := c.last.bearable(); got != c.want || c.last.reason() == "" {
			t.Errorf("%s: %v, %q", name, got, c.last.reason())
		}
	}
}
