// Package mutants contains the planted bugs. Each bug is one or two lines of code that break a
// rule, and can be switched on alone. The command catch runs the checks against every bug, from the
// fastest layer to the slowest, and fails if no check catches a bug.
//
// The product contains no planted bugs. The files in the directory edits describe how each bug is
// put into the sources: some lines of a file, and the lines that replace them, with a condition
// that calls bug(name). All edits together make one overlay for go build and go test ([Overlay]).
// The built code compares the name with the variable PLANTED_BUG, which it reads once at the start
// of the process.
//
// Guarantees: if the lines of an edit do not occur in its file exactly once, TestEditsFit fails and
// names the edit. The list of bugs and the edits contain the same names. Concurrency: plain values.
// Failure: none. Limits: if two packages enforce a rule, the bug is planted in both, under one
// name. Refused alternatives: conditions in the product, which every reader would have to skip; and
// a tool that changes the source at arbitrary places, because it finds untested lines, not broken
// guarantees.
package mutants

// All returns every planted bug.
func All() []Bug {
	var all []Bug
	for _, list := range [...][]Bug{rules(), leases(), log(), founding(), voting(), wiring(), secrets(), bounds(),
		identity(), fleet(), words(), disks(), shells(), owners(), packages(), doors(), glue(), between()} {
		all = append(all, list...)
	}
	return all
}
