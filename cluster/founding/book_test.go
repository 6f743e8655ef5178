package founding

import (
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/nodeidtest"
)

func TestBookHighestLifeWins(t *testing.T) {
	var b Book
	b.Configure(1, []Voter{{Raft: 2, Instance: nodeidtest.ID(20), Addr: "b:1", Life: 1},
		{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:1", Life: 3}})
	steps := []struct {
		why       string
		v         Voter
		firstHand bool
		want      string
	}{
		{"an older life is over", Voter{Raft: 1, Instance: nodeidtest.ID(9), Addr: "old:1", Life: 2}, true, "a:1"},
		{"hearsay of the same life fills in", Voter{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:2", Life: 3},
			false, "a:2"},
		{"the voter's own word", Voter{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:3", Life: 3}, true, "a:3"},
		{"hearsay against the voter's own word", Voter{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:4", Life: 3},
			false, "a:3"},
		{"another instance with the ID in the same life", Voter{Raft: 1, Instance: nodeidtest.ID(11), Addr: "a:5",
			Life: 3}, true, "a:3"},
		{"another instance with the ID in a newer life: a member that lies",
			Voter{Raft: 1, Instance: nodeidtest.ID(12), Addr: "a:7", Life: 9}, true, "a:3"},
		{"a newer life, even by hearsay", Voter{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:6", Life: 4}, false,
			"a:6"},
		{"a voter without an address", Voter{Raft: 1, Instance: nodeidtest.ID(10), Life: 5}, true, "a:6"},
		{"a replica outside the configuration", Voter{Raft: 7, Instance: nodeidtest.ID(70), Addr: "z:1",
			Life: 9}, true, "a:6"},
	}
	for _, s := range steps {
		b.Hear(s.v, s.firstHand)
		if got := b.Voters(); len(got) != 2 || got[0].Addr != s.want {
			t.Errorf("%s: the book says %+v, want %s", s.why, got, s.want)
		}
	}
	b.Configure(1, []Voter{{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:8", Life: 5},
		{Raft: 3, Instance: nodeidtest.ID(30), Addr: "c:1", Life: 1}})
	if v, found := b.Find(3); found || b.At() != 1 || b.Voters()[0].Addr != "a:8" {
		t.Errorf("the configuration that it has, told otherwise, made it %+v (%v)", b.Voters(), v)
	}
	b.Configure(5, []Voter{{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:1", Life: 3, Learner: true},
		{Raft: 3, Instance: nodeidtest.ID(30), Addr: "c:1", Life: 1}})
	b.Configure(4, []Voter{{Raft: 2, Instance: nodeidtest.ID(20), Addr: "b:1", Life: 1}})
	b.Hear(Voter{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:9", Life: 6}, true)
	want := []Voter{{Raft: 1, Instance: nodeidtest.ID(10), Addr: "a:9", Life: 6, Learner: true},
		{Raft: 3, Instance: nodeidtest.ID(30), Addr: "c:1", Life: 1}}
	if got := b.Voters(); !slices.Equal(got, want) || b.At() != 5 {
		t.Errorf("after a change of configuration the book says %+v, want %+v", got, want)
	}
}
