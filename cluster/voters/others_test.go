package voters

import (
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
	"github.com/mortise-lock/mortise/internal/nodeid"
)

// bystanders implements Others by a list.
type bystanders []Registered

func (b bystanders) All() iter.Seq[Registered] { return slices.Values(b) }
func (b bystanders) Has(instance nodeid.ID) bool {
	return slices.ContainsFunc(b, func(r Registered) bool { return r.Instance == instance })
}

func TestAllLeavingCountsTheOthers(t *testing.T) {
	voter := Registered{Instance: nodeidtest.ID(1), Name: "a", Session: true, Reachable: true, Leaving: true}
	view := func(others Others) View {
		return View{
			Self: 1, Settings: Settings{Voters: 1, Founders: []string{"a"}}, Config: Config{Voters: []nodeid.ReplicaID{1}},
			Others:     others,
			Replicas:   []Replica{{ID: 1, Instance: voter.Instance, Active: true, Linked: true}},
			Registered: []Registered{voter},
		}
	}
	other := Registered{Instance: nodeidtest.ID(2), Name: "x", Session: true, Reachable: true}
	leaves, away := other, other
	leaves.Leaving, away.Reachable = true, false
	for name, c := range map[string]struct {
		others Others
		want   bool
	}{
		"none": {nil, true}, "one stays": {bystanders{leaves, other}, false}, "all leave": {bystanders{leaves}, true},
		"one is out of reach": {bystanders{away}, true},
	} {
		if got := AllLeaving(view(c.others)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	f := Facts{Registered: []Registered{voter}, Others: bystanders{other}}
	if n := len(slices.Collect(f.All())); n != 2 || !f.Knows(other.Instance) || !f.Knows(voter.Instance) ||
		f.Knows(nodeidtest.ID(3)) {
		t.Errorf("%d instances have a session", n)
	}
}

func TestAFounderIsOneCandidate(t *testing.T) {
	v := View{Self: 1, Now: time.Minute, Settings: Settings{Voters: 5, Founders: []string{"a", "b", "c"}},
		Config: Config{Voters: []nodeid.ReplicaID{1}}, Fresh: 9}
	add := func(id uint64, name string) {
		v.Registered = append(v.Registered, Registered{Instance: nodeidtest.ID(id), Name: name, Session: true,
			Reachable: true})
	}
	v.Replicas = []Replica{{ID: 1, Instance: nodeidtest.ID(1), Active: true, Linked: true}}
	for i, name := range []string{"a", "b", "b", "b", "c", "c"} {
		add(uint64(i+1), name)
	}
	if s := look(v); s.eligible != 3 || len(s.candidates) != 2 {
		t.Errorf("%d could vote, %d are candidates: %+v", s.eligible, len(s.candidates), s.candidates)
	}
	v.Settings.Founders = nil // without founders each name counts once, too
	for id := range uint64(20_000) {
		add(id+10, "same")
	}
	if s := look(v); s.eligible != 4 {
		t.Errorf("%d could vote", s.eligible)
	}
}
