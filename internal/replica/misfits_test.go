package replica

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/cluster/founding"
	"github.com/mortise-lock/mortise/cluster/voters"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/raftlog"
	"github.com/mortise-lock/mortise/session"
)

// A founder that is missing is named together with the instances that may be it: they are
// connected, stay, and are no founders. A group with many such instances has them on purpose.
func TestMisnamed(t *testing.T) {
	at := uint64(0)
	is := func(name string, change func(*voters.Registered)) voters.Registered {
		at++
		r := voters.Registered{Instance: nodeidtest.ID(at), Name: name, Addr: name + ":1", Session: true,
			Reachable: true}
		if change != nil {
			change(&r)
		}
		return r
	}
	a, b, c := is("a", nil), is("b", nil), is("c", nil)
	gone := func(r *voters.Registered) { r.Reachable = false }
	leaves := func(r *voters.Registered) { r.Leaving = true }
	const one = "Name: the founder c does not answer, and x at x:1 runs and is not one of the Founders, so it cannot " +
		"vote; if one of x at x:1 should be c, restart it under this Name, and otherwise start c again"
	for what, s := range map[string]struct {
		list []voters.Registered
		want string
	}{
		"all founders":               {[]voters.Registered{a, b, c, is("x", nil)}, ""},
		"a founder is missing":       {[]voters.Registered{a, b}, ""},
		"renamed":                    {[]voters.Registered{a, b, is("x", nil)}, one},
		"renamed, its session lasts": {[]voters.Registered{a, b, is("c", gone), is("x", nil)}, one},
		"renamed, it leaves":         {[]voters.Registered{a, b, is("x", leaves)}, ""},
		"renamed, it has gone":       {[]voters.Registered{a, b, is("x", gone)}, ""},
		"two renamed": {[]voters.Registered{a, is("y", nil), is("x", nil)}, "Name: the founders b, c do not answer, and " +
			"x at x:1, y at y:1 run and are not among the Founders, so they cannot vote; if one of x at x:1, y at y:1 " +
			"should be b, restart it under this Name, and otherwise start b, c again"},
		"many others": {[]voters.Registered{a, b, is("w", nil), is("x", nil), is("y", nil), is("z", nil)}, ""},
	} {
		f := voters.Facts{Settings: voters.Settings{Founders: []string{"a", "b", "c"}}, Registered: s.list}
		if got := misnamed(&f); got != s.want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, s.want)
		}
	}
}

func TestRefusedBuildsAreNamedForAWhile(t *testing.T) {
	var r Refused
	const now = clock.Time(time.Hour)
	old := session.Outdated{Group: 4, Build: 3}
	r.Note(now, &Record{Name: "n4\x1b", Addr: "d:1"}, old)
	r.Note(now.Add(time.Second), &Record{Name: "n4\x1b", Addr: "d:1"}, old)
	want := []string{"Build: n4\\u{1b} at d:1 is refused: " + old.String()}
	if got := r.sentences(now.Add(refusedFor)); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := r.sentences(now.Add(time.Second + refusedFor)); got != nil {
		t.Errorf("it has not asked for %v, and the leader says %q", refusedFor, got)
	}
	for i := range 3 * maxRefused {
		r.Note(now, &Record{Name: fmt.Sprint(i)}, old)
	}
	if got := r.sentences(now); len(got) != maxRefused || !strings.HasPrefix(got[0], "Build: 0 at ") {
		t.Errorf("%d sentences: %q", len(got), got)
	}
}

// TestDifferingReplicasAreNamed checks that a replica whose state differed stays named when the
// group has removed it, until an instance with its name has started anew.
func TestDifferingReplicasAreNamed(t *testing.T) {
	var d differing
	wall := func() time.Time { return time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC) }
	place := func(id uint64, addr string) raftlog.Member {
		return raftlog.Member{ID: id, Context: founding.AppendPlace(nil,
			founding.Voter{Raft: id, Instance: nodeidtest.ID(id), Addr: addr})}
	}
	config := raftlog.Configuration{Voters: []uint64{1, 2}, Members: []raftlog.Member{place(1, "a:1"), place(2, "b:1")}}
	a := voters.Registered{Instance: nodeidtest.ID(1), Name: "a"}
	b := voters.Registered{Instance: nodeidtest.ID(2), Name: "b\x1b"}
	survey := func(entry uint64) *raftlog.Survey {
		return &raftlog.Survey{Config: config, Replicas: []raftlog.Progress{{ID: 1}, {ID: 2, Differed: entry}}}
	}
	want := func(what string, s *raftlog.Survey, says string, all ...voters.Registered) {
		t.Helper()
		list := d.sentences(wall, s, &voters.Facts{Registered: all})
		if says == "" && len(list) == 0 || len(list) == 1 && says != "" && strings.HasPrefix(list[0], says) &&
			strings.Contains(list[0], "2026-05-04 03:02:01 UTC") {
			return
		}
		t.Errorf("%s: %q", what, list)
	}
	const named = "State: the replica of b\\u{1b} had another state than the majority after entry 7 and has ended"
	want("all agree", survey(0), "", a, b)
	want("it differs", survey(7), named, a, b)
	want("its session has ended", survey(7), named, a)
	want("it was removed", &raftlog.Survey{Replicas: []raftlog.Progress{{ID: 1}}}, named, a)
	b.Instance = nodeidtest.ID(3)
	want("it has started again", survey(7), "", a, b)
	want("its new session has ended", survey(7), "", a)
	d = differing{}
	want("without a name", survey(8), "State: the replica of the instance at b:1 had", a)
}
