package e2e

import (
	"runtime/trace"
	"testing"
)

// TestHandOffsOfALock takes the locks that scripts/handoffs traces, each in its own trace region.
func TestHandOffsOfALock(t *testing.T) {
	if !trace.IsEnabled() {
		t.Skip("there is no trace to count in: scripts/handoffs makes one")
	}
	for _, n := range realFleet(t) {
		role := "follower"
		if n.Status().Leading {
			role = "leader"
		}
		for range 200 {
			region := trace.StartRegion(t.Context(), role)
			l, err := n.Lock(t.Context(), "k")
			region.End()
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Unlock(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
