package mortiseotel

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/adapters/mortiseotel/internal/table"
)

// TestADivergedReplicaIsCounted checks the figure of the sentences about states, which
// internal/lab/e2e.TestAReplicaThatDivergesIsFound compares with a real one.
func TestADivergedReplicaIsCounted(t *testing.T) {
	for want, differs := range [][]string{
		nil, {"Name: a", "State: the replica of b"}, {"State: b", "State: c", "Build: d"},
	} {
		got, there := figures(mortise.Status{Health: &mortise.Health{Differs: differs}})[table.Diverged]
		if got != float64(want) || !there {
			t.Errorf("%q: %v, %v", differs, got, there)
		}
	}
	if _, there := figures(mortise.Status{})[table.Diverged]; there {
		t.Error("an instance that does not lead reports it")
	}
}

// TestEachFigureHasItsField compares the figures of a status with another value in each field.
func TestEachFigureHasItsField(t *testing.T) {
	s := mortise.Status{Member: mortise.Member{Votes: true}, Leader: "a", Leading: true, Term: 2, Held: 20, Waiters: 9,
		Standby: 5, LeaseFor: 6 * time.Second, Sticky: mortise.StickyStatus{Kept: 7, Grants: 8, Recalls: 10,
			RecallTime: 11 * time.Second, InUse: 12}, Voters: []mortise.Member{{Votes: true}, {}, {Votes: true}},
		VotersWanted: 3, HooksDropped: 13, Age: 14 * time.Second, Available: 15 * time.Second, Starved: 16 * time.Second,
		Health: &mortise.Health{Members: 17, Surplus: 18}}
	want := map[string]float64{table.Held: 20, table.Waiters: 4, table.Standby: 5, table.Kept: 7, table.KeptGrants: 8,
		table.Recalls: 10, table.RecallTime: 11, table.InUse: 12, table.LeaseLeft: 6, table.LeaderKnown: 1,
		table.LeaderHere: 1, table.Voters: 2, table.DiskFault: 0, table.DiskLow: 0, table.Time: 14, table.Available: 15,
		table.Failed: 0, table.Dropped: 13, table.Term: 2, table.Starved: 16, table.Members: 17, table.Missing: 1,
		table.Surplus: 18, table.Diverged: 0}
	if got := figures(s); !maps.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	for what, c := range map[string]struct {
		change func(*mortise.Status)
		want   map[string]float64
		gone   []string
	}{
		"a faulty disk": {func(s *mortise.Status) { s.Disk = &mortise.DiskFault{State: mortise.DiskHung} },
			map[string]float64{table.DiskFault: 1}, nil},
		"a full disk": {func(s *mortise.Status) { s.Disk = &mortise.DiskFault{State: mortise.DiskLow} },
			map[string]float64{table.DiskLow: 1}, nil},
		"failed":    {func(s *mortise.Status) { s.Err = errors.New("x") }, map[string]float64{table.Failed: 1}, nil},
		"no leader": {func(s *mortise.Status) { s.Leader = "" }, map[string]float64{table.LeaderKnown: 0}, nil},
		"follows":   {func(s *mortise.Status) { s.Leading = false }, map[string]float64{table.LeaderHere: 0}, nil},
		"more stand by": {func(s *mortise.Status) { s.Standby = 10 },
			map[string]float64{table.Standby: 10, table.Waiters: 0}, nil},
		"all stand by": {func(s *mortise.Status) { s.Standby = 9 },
			map[string]float64{table.Standby: 9, table.Waiters: 0}, nil},
		"two silent voters": {func(s *mortise.Status) {
			s.Health = &mortise.Health{Members: 17, Surplus: 18, Missing: make([]mortise.MissingVoter, 2)}
		}, map[string]float64{table.Missing: 2}, nil},
		"as many voters as wanted": {func(s *mortise.Status) { s.VotersWanted = 2 },
			map[string]float64{table.Missing: 0}, nil},
		"more voters than wanted": {func(s *mortise.Status) { s.VotersWanted = 1 },
			map[string]float64{table.Missing: 0}, nil},
		"no vote": {func(s *mortise.Status) { s.Votes = false }, nil, []string{table.Term, table.Starved}},
		"no leader's view": {func(s *mortise.Status) { s.Health = nil }, nil,
			[]string{table.Members, table.Missing, table.Surplus, table.Diverged}},
	} {
		changed, all := s, maps.Clone(want)
		c.change(&changed)
		maps.Copy(all, c.want)
		for _, name := range c.gone {
			delete(all, name)
		}
		if got := figures(changed); !maps.Equal(got, all) {
			t.Errorf("%s: %v\nwant %v", what, got, all)
		}
	}
}
