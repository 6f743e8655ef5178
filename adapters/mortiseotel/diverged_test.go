package mortiseotel

import (
	"testing"

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
