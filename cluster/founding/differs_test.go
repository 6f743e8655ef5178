package founding

import (
	"testing"
	"time"
)

// The warning about a setting that differs has both values, and names the one that has an effect.
func TestADifferingSettingIsToldWithBothValues(t *testing.T) {
	group := Settings{Founders: []string{"a", "b", "c"}, Voters: 3, SessionTTL: 10 * time.Second, Grace: 10 * time.Second}
	const end = ": make it equal on all instances"
	for want, change := range map[string]func(*Settings){
		"": func(*Settings) {},
		"SessionTTL is 5s on this instance and 10s in the group, and each session gets the shorter one" + end: func(
			s *Settings) {
			s.SessionTTL = 5 * time.Second
		},
		"SessionTTL is 15s on this instance and 10s in the group, and each session gets the shorter one" + end: func(
			s *Settings) {
			s.SessionTTL = 15 * time.Second
		},
		"Grace is 0s on this instance and 10s in the group, and the group's value counts" + end: func(s *Settings) {
			s.Grace = 0
		},
		"Voters is 1 on this instance and 3 in the group, and the group's value counts" + end: func(s *Settings) {
			s.Voters = 1
		},
		"Founders is [a, b, d] on this instance and [a, b, c] in the group, and the group's value counts" + end: func(
			s *Settings) {
			s.Founders = []string{"a", "b", "d"}
		},
		"Founders is Replicas: 3 on this instance and [a, b, c] in the group, and the group's value counts" + end: func(
			s *Settings) {
			s.Founders, s.Replicas = nil, 3
		},
	} {
		own := group
		change(&own)
		if got := Difference(own, group); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
