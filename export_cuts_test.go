package mortise

import "testing"

// CutFleet is StartFleet with a way to cut a node off from all others, silently, and to end that.
func CutFleet(t *testing.T, n int) (nodes []*Node, isolate, rejoin func(i int)) {
	t.Helper()
	f := startFleet(t, n)
	return append([]*Node(nil), f.nodes...), f.isolate, f.rejoin
}
