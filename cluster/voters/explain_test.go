package voters

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

func TestExplain(t *testing.T) {
	five := Settings{Voters: 5}
	for _, c := range []struct {
		settings Settings
		scene    string
		want     string // the values of eligible, target, quorum, missing, cannotSurvive and due
	}{
		{three, "a* b c", "3 3 true [] [] false"},
		{three, "a* b c/silent", "3 3 true [3] [1 2] true"}, // Ready waits during a restart
		{three, "a* b/dead c/dead", "1 1 false [2 3] [] true"},
		{three, "a* | b |", "2 1 true [] [1] false"},
		{three, "a* | b | c", "3 3 true [] [1] true"},
		{three, "a* b c | | d", "4 3 true [] [] false"},
		{five, "a* b c d/silent e", "5 5 true [4] [] true"},
		{five, "a* b c d/dead e/dead", "3 3 true [4 5] [1 2 3] true"},
		{three, "a* | b | c/lost3", "3 3 true [] [1] true"}, // the vote of c is needed
		{three, "a* | | b/lost3", "1 1 true [] [1] false"},
		// Due is set, since otherwise a rolling restart would next stop the only voter.
		{three, "a* | b | c/refused", "2 1 true [] [1] true"},
		{three, "a* b c | | d/refused", "3 3 true [] [] false"},
		{three, "a*/leaving b/leaving", "0 0 true [] [1 2] false"},
	} {
		r := Explain(scene(t, c.scene, c.settings))
		ids := []nodeid.ReplicaID{}
		for _, m := range r.Missing {
			ids = append(ids, m.ID)
		}
		got := fmt.Sprint(r.Eligible, " ", r.Target, " ", r.Quorum, " ", ids, " ",
			append([]nodeid.ReplicaID{}, r.CannotSurvive...),
			" ", r.Due)
		if got != c.want {
			t.Errorf("%q: %s, want %s", c.scene, got, c.want)
		}
	}
	r := Explain(scene(t, "a* b c/silent", three))
	if want := (Missing{ID: 3, Instance: nodeidtest.ID(103), Name: "c",
		SilentFor: 4 * time.Second}); r.Missing[0] != want {
		t.Errorf("missing: %+v, want %+v", r.Missing[0], want)
	}
	heard := scene(t, "a* b c/silent", three)
	heard.Replicas[2].Heard = true
	if r := Explain(heard); !r.Missing[0].Heard {
		t.Errorf("missing: %+v, want Heard", r.Missing[0])
	}
	// In a joint configuration either majority can be lost.
	v := scene(t, "a* b c/silent | |", three)
	v.Config.Voters, v.Config.Outgoing = []nodeid.ReplicaID{1}, []nodeid.ReplicaID{1, 2, 3}
	if r := Explain(v); !r.Quorum || fmt.Sprint(r.CannotSurvive) != "[1 2]" || len(r.Missing) != 1 {
		t.Errorf("joint: %+v", r)
	}
}

// TestAwaitsReturn checks when Due is set only for the return of a silent replica: if the replicas
// have directories, and no instance runs that could take its place.
func TestAwaitsReturn(t *testing.T) {
	durable := Settings{Voters: 3, Durable: true}
	founders := Settings{Voters: 3, Durable: true, Founders: []string{"a", "b", "c"}}
	fixed := Settings{Voters: 3, Durable: true, Replicas: 3}
	for _, c := range []struct {
		name     string
		settings Settings
		scene    string
		want     bool
	}{
		{"no other instance", durable, "a* b c/silent", true},
		{"two of five", Settings{Voters: 5, Durable: true}, "a* b c d/silent e/silent", true},
		{"a learner that is silent", durable, "a* | b/silent |", true},
		{"in memory", three, "a* b c/silent", false},
		{"a learner", durable, "a* b c/silent | d |", false},
		{"another instance", durable, "a* b c/silent | | d", false},
		{"an instance beyond Replicas", fixed, "a* b c/silent | | d", false},
		{"an instance with its name", founders, "a* b c/silent | | c", false},
		{"an instance that was lost often", durable, "a* b c/silent | | d/lost3", false},
		{"an instance that has refused", durable, "a* b c/silent | | d/refused", false},
		{"no founder", founders, "a* b c/silent | | d", true},
		{"an instance that leaves", durable, "a* b c/silent | | d/leaving", true},
		{"an instance that is silent, too", durable, "a* b c/silent | | d/unreachable", true},
		{"a voter that leaves", durable, "a* b/leaving c/silent", false},
		{"a voter that is dead", durable, "a* b c/minute", false},
		{"no majority", durable, "a* b/silent c/silent", false},
		{"nothing is due", durable, "a* b c", false},
		{"a learner that is behind", durable, "a* | b/behind | c/silent", false},
	} {
		if r := Explain(scene(t, c.scene, c.settings)); r.AwaitsReturn != c.want || r.AwaitsReturn && !r.Due {
			t.Errorf("%s: %v, due %v (%s)", c.name, r.AwaitsReturn, r.Due, r.Next.Why)
		}
	}
}

func TestMayStop(t *testing.T) {
	v := scene(t, "a* b c | d |", Settings{Voters: 3})
	for id, want := range map[nodeid.ReplicaID]bool{0: true, 1: false, 2: false, 4: false, 9: true} {
		if got := MayStop(v, id, 0); got != want {
			t.Errorf("replica %d may stop: %v, want %v", id, got, want)
		}
	}
	v.Config.At = 7
	if !MayStop(v, 9, 7) || MayStop(v, 9, 8) {
		t.Error("a leader that does not know the newest configuration answers about a replica that it may not know")
	}
	v.Replicas[1].Settled = false
	if MayStop(v, 9, 0) {
		t.Error("a voter does not know yet that the configuration is committed: with the leader's death it would " +
			"need the leaver's vote")
	}
	v.Replicas[1].Active = false // a replica out of contact delays no leaver
	if !MayStop(v, 9, 0) {
		t.Error("a silent voter delays a leaver")
	}
	v.Replicas[2].Settled, v.Replicas[2].Active = false, false
	if MayStop(v, 9, 0) {
		t.Error("no other voter knows that the configuration is committed: the leaver is needed if the leader dies")
	}
	v.Replicas[2].Settled = true
	v.Config.Outgoing = []nodeid.ReplicaID{1, 2, 9}
	if MayStop(v, 9, 0) {
		t.Error("a vote that the joint configuration still counts may stop")
	}
	v.Config = Config{Voters: []nodeid.ReplicaID{2}}
	if MayStop(v, 1, 0) {
		t.Error("the leader itself may stop, though its successor does not know yet that the change is " +
			"committed")
	}
	for line, want := range map[string]bool{
		"a*/leaving b/leaving | c/leaving | d/leaving":      true,
		"a*/leaving b/leaving | | d":                        false,
		"a*/leaving b/leaving | | d/unreachable":            true,
		"a*/leaving b/leaving/nosession c/leaving/dead | |": true,
		"a*/leaving b/gone | |":                             false,
		"a* b":                                              false,
		"":                                                  false,
	} {
		if got := AllLeaving(scene(t, line, Settings{Voters: 3})); got != want {
			t.Errorf("%q: all leave: %v, want %v", line, got, want)
		}
	}
}
