package cluster

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// TestAlarms plays reports, one a second, and checks which lines a leader logs: each event once,
// with the name, the observed time and the next step.
func TestAlarms(t *testing.T) {
	well, lacking := &voters.Report{Votes: 3}, &voters.Report{Votes: 1}
	c := voters.Missing{ID: 3, Instance: nodeidtest.ID(3), Name: "c"}
	// gone returns reports without c's messages, one for each second of silence.
	gone := func(first, last int) (list []*voters.Report) {
		for i := first; i <= last; i++ {
			c.SilentFor = time.Duration(i) * time.Second
			list = append(list, &voters.Report{Votes: 3, Missing: []voters.Missing{c}})
		}
		return list
	}
	crowd := func(n int) *voters.Report {
		return &voters.Report{Surplus: &voters.Surplus{Running: n, Replicas: 2, Names: []string{"a", "b", "c"},
			For: 20 * time.Second}}
	}
	times := func(n int, r *voters.Report) (list []*voters.Report) {
		for range n {
			list = append(list, r)
		}
		return list
	}
	ended := gone(0, 0)[0]
	nameless := gone(5, 5)[0]
	nameless.Missing[0].Name = ""
	const back = "INFO the voter is back, or another instance has taken its place c"
	const removed = "WARN a voter has ended or fallen silent and has lost its vote, and no instance has taken its place c "
	for what, c := range map[string]struct {
		reports [][]*voters.Report
		want    []string
	}{
		"well":                 {[][]*voters.Report{{well, nil, well}}, nil},
		"a short silence":      {[][]*voters.Report{{well}, gone(1, 2), {well}}, nil},
		"a voter falls silent": {[][]*voters.Report{gone(0, 60)}, []string{"WARN a voter is silent c 3s"}},
		"it comes back and is silent again": {[][]*voters.Report{gone(1, 8), {well}, gone(1, 8)},
			[]string{"WARN a voter is silent c 3s", back, "WARN a voter is silent c 3s"}},
		"it is silent, and is removed": {[][]*voters.Report{gone(1, 5), times(60, lacking), {well}},
			[]string{"WARN a voter is silent c 3s", back}},
		"its process has ended, and it restarts": {[][]*voters.Report{{well, ended}, times(3, lacking), {well}}, nil},
		"its process has ended": {[][]*voters.Report{{well, ended}, times(60, lacking), {well}},
			[]string{removed + "5s", back}},
		"a spare instance takes its place": {[][]*voters.Report{{well, ended}, times(60, well)}, nil},
		"another one leads for a while": {[][]*voters.Report{gone(1, 4), {nil}, gone(6, 8)},
			[]string{"WARN a voter is silent c 3s"}},
		"a new leader, which has heard nothing": {[][]*voters.Report{gone(0, 4)}, []string{"WARN a voter is silent c 3s"}},
		"its name is not known": {[][]*voters.Report{{nameless}},
			[]string{"WARN a voter is silent " + nodeidtest.ID(3).String() + " 5s"}},
		"scaled from 2 to 5 and 6, and back": {[][]*voters.Report{{crowd(5), crowd(5), crowd(4), crowd(6), well, well}},
			[]string{"WARN 5 instances run (a, b, c and 2 more), but Replicas says 2 20s",
				"WARN 6 instances run (a, b, c and 3 more), but Replicas says 2 20s",
				"INFO no more instances run than Replicas says"}},
	} {
		var a alarms
		var got []string
		now := time.Hour
		for _, list := range c.reports {
			for _, r := range list {
				now += time.Second
				for _, line := range a.look(now, r) {
					got = append(got, said(t, line))
				}
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

// said returns the line with its name and time. It fails if a warning has no next step.
func said(t *testing.T, line alarm) string {
	text, _, _ := strings.Cut(line.text, ": in a cut")
	text = fmt.Sprint(line.level, " ", text)
	next := ""
	for i := 1; i < len(line.attrs); i += 2 {
		switch line.attrs[i-1] {
		case "voter", "for_at_least":
			text += fmt.Sprint(" ", line.attrs[i])
		case "next":
			next = fmt.Sprint(line.attrs[i])
		}
	}
	if line.level == slog.LevelWarn && !strings.HasPrefix(next, "if it does not run, start it again") &&
		!strings.HasSuffix(next, "or scale back to 2") {
		t.Errorf("%q has no next step: %q", text, next)
	}
	return text
}
