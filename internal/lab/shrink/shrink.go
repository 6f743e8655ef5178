// Package shrink finds the faults that a failure needs. It knows nothing of what a fault is: the
// caller numbers its faults, runs with some of them, and reports whether that run fails.
//
// # Guarantees
//
// The result of [Minimal] was run and has failed. If minimal is true, each run without one of its
// faults was made, and has passed. A run must be repeatable: equal faults give an equal verdict.
//
// # Limits
//
// The result is minimal locally: another, smaller set of faults may fail too, if it is not a subset
// with one fault less. Switching off a fault changes what happens later, so a failure may need more
// faults than it seems.
package shrink

// Minimal returns the ascending numbers of some of the faults 0 to n-1 with which a run fails. A
// run with all of them must fail. Fails gets ascending numbers, which it must not keep or change.
// Minimal makes at most the given number of runs, and reports whether no fault of the result can be
// left out.
//
// It leaves out large parts first, and halves the parts when none can be left out (Zeller and
// Hildebrandt, "Simplifying and isolating failure-inducing input").
func Minimal(n, runs int, fails func(on []int) bool) (on []int, minimal bool) {
	on = make([]int, n)
	for i := range on {
		on[i] = i
	}
	try := func(some []int) bool {
		if runs <= 0 {
			return false
		}
		runs--
		return fails(some)
	}
	if n == 0 || try(nil) {
		return nil, true
	}
	for size := (n + 1) / 2; ; size = (size + 1) / 2 {
		for again := true; again; {
			again = false
			// Late faults first: the run up to them stays the same.
			for end := len(on); end > 0; end -= size {
				begin := max(end-size, 0)
				rest := make([]int, 0, len(on))
				rest = append(append(rest, on[:begin]...), on[end:]...)
				if len(rest) > 0 && try(rest) {
					on, again = rest, true
				}
				if runs <= 0 {
					return on, false
				}
			}
		}
		if size == 1 {
			return on, true
		}
	}
}
