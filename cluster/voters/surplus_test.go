package voters

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

// fleet returns the facts of a leader of two instances that Replicas allows, and of the given ones.
// Each is a name with flags of the function wrong.
func fleet(t *testing.T, replicas int, others ...string) Facts {
	v := scene(t, "n1* | n2 | "+strings.Join(others, " "), Settings{Voters: 3, Replicas: replicas})
	return Facts{Self: v.Self, Settings: v.Settings, Config: v.Config, Replicas: v.Replicas, Registered: v.Registered}
}

// TestSurplus checks that instances beyond Replicas are reported with the number, the names and the
// time for which they were seen, and that nothing else is reported as a surplus.
func TestSurplus(t *testing.T) {
	five := []string{"n3", "n4", "n5"}
	for _, c := range []struct {
		what  string
		facts func(after time.Duration) Facts
		want  string // after a minute; empty means no report
	}{
		{"2, then scaled to 5", func(time.Duration) Facts { return fleet(t, 2, five...) },
			"5 of 2 [n1 n2 n3 n4 n5] 1m0s"},
		{"as many as Replicas", func(time.Duration) Facts { return fleet(t, 5, five...) }, ""},
		{"fewer than Replicas", func(time.Duration) Facts { return fleet(t, 7, five...) }, ""},
		{"Founders", func(time.Duration) Facts { return fleet(t, 0, five...) }, ""},
		{"an instance without a name", func(time.Duration) Facts {
			f := fleet(t, 2, "n3")
			f.Registered[2].Name = ""
			return f
		}, "3 of 2 [n1 n2] 1m0s"},
		{"two sessions of one instance", func(time.Duration) Facts {
			f := fleet(t, 2)
			f.Registered = append(f.Registered, f.Registered[1])
			return f
		}, ""},
		{"two instances of one name", func(time.Duration) Facts { return fleet(t, 2, "n2") }, "3 of 2 [n1 n2 n2] 1m0s"},
		{"restarts, each with the old session in the table for its TTL", func(time.Duration) Facts {
			return fleet(t, 2, "n2/unreachable", "n2/unreachable", "x/unreachable")
		}, ""},
		{"one that leaves", func(time.Duration) Facts { return fleet(t, 2, "n3/leaving") }, ""},
		{"a machine without power, and its successor", func(after time.Duration) Facts {
			if after > 15*time.Second { // the keepalives have ended the stream
				return fleet(t, 3, "n4", "n3/unreachable")
			}
			return fleet(t, 3, "n4", "n3")
		}, ""},
		{"it came later", func(after time.Duration) Facts {
			if after < 25*time.Second {
				return fleet(t, 2)
			}
			return fleet(t, 2, five...)
		}, "5 of 2 [n1 n2 n3 n4 n5] 35s"},
		{"it was there and is over", func(after time.Duration) Facts {
			if after < 30*time.Second {
				return fleet(t, 2, five...)
			}
			return fleet(t, 2, "n3/unreachable")
		}, ""},
	} {
		var s Reconciler
		s.Begin()
		for at := time.Duration(0); at <= time.Minute; at += time.Second {
			s.Look(time.Hour+at, c.facts(at), 99)
			s.Probes(time.Hour + at)
			if early := s.Report().Surplus; early != nil && early.For < surplusAfter {
				t.Fatalf("%s: reported after %v", c.what, early.For)
			}
		}
		got := ""
		if r := s.Report().Surplus; r != nil {
			got = fmt.Sprint(r.Running, " of ", r.Replicas, " ", r.Names, " ", r.For)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		s.Begin()
		if s.Look(2*time.Hour, c.facts(time.Minute), 99); s.Report().Surplus != nil {
			t.Errorf("%s: a new leader reports a time that it has not observed", c.what)
		}
	}
}

func TestSurplusNamesAreBounded(t *testing.T) {
	f := fleet(t, 2)
	for i := range 1000 {
		f.Registered = append(f.Registered, Registered{Instance: nodeidtest.ID(uint64(1000 + i)),
			Name: fmt.Sprintf("x%04d", 999-i), Session: true, Reachable: true})
	}
	var s Reconciler
	s.Look(0, f, 99)
	s.Look(surplusAfter, f, 99)
	if r := s.Report().Surplus; r == nil || r.Running != 1002 || len(r.Names) != maxNamed || r.Names[2] != "x0000" {
		t.Errorf("%+v", r)
	}
}
