package mortise

import (
	"strings"
	"testing"
)

// The next safe step is that of the instance that does not fit the group, and not a further
// instance or a restart of any one.
func TestAdviceForInstancesThatDoNotFit(t *testing.T) {
	const name = "Name: the founder c does not answer, and x at x:1 runs and is not one of the Founders, so it cannot " +
		"vote; if one of x at x:1 should be c, restart it under this Name, and otherwise start c again"
	const build = "Build: d at d:1 is refused: the group has lock rules 4, this build knows up to 3: it gets no " +
		"session, and could not vote; upgrade it"
	lost := []MissingVoter{{Member: Member{Name: "b"}}}
	for what, c := range map[string]struct {
		h    Health
		want string
	}{
		"two are left": {Health{Eligible: 2, Differs: []string{"Voters: 3 and 5; it counts", name}},
			"if one of x at x:1 should"},
		"one is left":        {Health{Eligible: 1, Differs: []string{name}}, "if one of x at x:1 should"},
		"three, and a build": {Health{Eligible: 3, Differs: []string{build}}, "upgrade it"},
		"a voter is silent": {Health{Eligible: 3, Differs: []string{name}, Missing: lost, Due: true},
			"stop no instance now: b"},
		"more than Replicas": {Health{Eligible: 2, Surplus: 3, Differs: []string{build,
			"Surplus: 5 instances run, but Replicas says 2; set Replicas to 5"}},
			"set Replicas to 5"},
		"two, and all fit": {Health{Eligible: 2, Differs: []string{"Voters: 3 and 5; it counts"}}, "start a third instance"},
	} {
		if got := c.h.advice(true, false); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s\nwant %s", what, got, c.want)
		}
	}
}
