package mortise

import "testing"

// StartFleet is startFleet for the tests of what stands on this package, which cannot live in it: whole nodes inside a bubble, and a
// way to crash one.
func StartFleet(t *testing.T, n int) (nodes []*Node, crash func(i int)) {
	t.Helper()
	f := startFleet(t, n)
	return append([]*Node(nil), f.nodes...), f.crash
}
