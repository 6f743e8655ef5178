package shrink_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mortise-lock/mortise/internal/lab/shrink"
)

// TestMinimal draws failures that need one of two sets of faults, some of which also need that
// another fault is absent. So the failures are not monotone.
func TestMinimal(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 1 + r.IntN(40)
		some := func() []int { return slices.Sorted(slices.Values(r.Perm(n)[:r.IntN(min(n, 5)+1)])) }
		one, other, spoils := some(), some(), r.IntN(n)
		has := func(on, all []int) bool {
			return !slices.ContainsFunc(all, func(i int) bool { return !slices.Contains(on, i) })
		}
		runs := 0
		fails := func(on []int) bool {
			runs++
			if !slices.IsSorted(on) {
				t.Fatalf("seed %d: a run with the faults %v, which are not ascending", seed, on)
			}
			return has(on, one) || has(on, other) && (len(on) == n || !slices.Contains(on, spoils))
		}
		on, minimal := shrink.Minimal(n, 10_000, fails)
		if !minimal || !fails(on) {
			t.Fatalf("seed %d: %v of %d faults, minimal: %v, fails: %v", seed, on, n, minimal, fails(on))
		}
		for i := range on {
			if fails(slices.Delete(slices.Clone(on), i, i+1)) {
				t.Fatalf("seed %d: the result %v fails without %d too", seed, on, on[i])
			}
		}
		if runs > 1000 {
			t.Errorf("seed %d: %d runs for %d faults", seed, runs, n)
		}
	}
}

// With few runs the result still fails, and is not called minimal.
func TestFewRuns(t *testing.T) {
	for runs := range 40 {
		made := 0
		fails := func(on []int) bool { made++; return slices.Contains(on, 17) && slices.Contains(on, 40) }
		on, minimal := shrink.Minimal(64, runs, fails)
		if made > runs {
			t.Fatalf("%d runs were made, at most %d were allowed", made, runs)
		}
		if !fails(on) || minimal && len(on) != 2 {
			t.Fatalf("after %d runs: %v, minimal: %v", runs, on, minimal)
		}
	}
}
