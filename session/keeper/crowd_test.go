package keeper

import (
	"testing"

	"github.com/mortise-lock/mortise/lockfsm"
)

// TestACrowdDoesNotPinTheInbox checks that the memory for the results of a crowd is given back.
func TestACrowdDoesNotPinTheInbox(t *testing.T) {
	t.Parallel()
	var b inbox
	const crowd, large = 8192, 1024
	for range crowd {
		b.inputs, b.results = append(b.inputs, input{}), append(b.results, lockfsm.Result{})
		b.changes = append(b.changes, lockfsm.Change{})
	}
	for range 256 {
		b.reset()
	}
	if n := max(cap(b.inputs), cap(b.results), cap(b.changes)); n > large {
		t.Errorf("room for %d results is kept after 256 turns without one", n)
	}
}
