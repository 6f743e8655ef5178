package session

import (
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/limits"
)

// TestABurstDoesNotPinMemory checks that a large slice is reused while turns need an eighth of it,
// and given back afterwards, and that it keeps nothing alive.
func TestABurstDoesNotPinMemory(t *testing.T) {
	t.Parallel()
	const burst = 8 * alwaysKept
	likely, before := 0, make([]*int, burst)
	for i := range before {
		before[i] = new(int)
	}
	s := Emptied(before, &likely)
	for _, p := range before {
		if p != nil {
			t.Fatal("a slice for reuse keeps something alive")
		}
	}
	for range 200 {
		if s = Emptied(s[:burst/8], &likely); cap(s) != burst {
			t.Fatal("a slice of which an eighth is needed is not reused")
		}
	}
	turns := 0
	for ; cap(s) > 0 && turns < 1000; turns++ {
		s = Emptied(s[:0], &likely)
	}
	if turns > 150 {
		t.Errorf("the slice was kept for %d turns without use", turns)
	}
}

func TestReuseAtItsBound(t *testing.T) {
	limits.AtMost(t, "alwaysKept", alwaysKept, func(n int) bool {
		return Emptied(make([]int, 0, n), new(int)) != nil
	})
}
