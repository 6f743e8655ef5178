package mutants

// Bug is one planted bug.
type Bug struct {
	// Name is the name of the bug. The environment variable PLANTED_BUG selects the bug by this
	// name, which the edits pass to the function bug.
	Name string
	// Package is the directory of the package that enforces the rule, "." for the root.
	Package string
	// Hazard identifies the hazard in the list from which the design was made. It is a number from 1
	// to 77 for a row of the list's table, and A, B, L or S with a number for a counter-example. For
	// other bugs, it is "none".
	Hazard string
	// Breaks describes the resulting failure in plain words.
	Breaks string
	// Nodes is a regular expression. It selects the tests of whole nodes, and these tests should
	// catch the bug. Empty means none.
	Nodes string
	// Some is set for the bugs that CI runs at every merge.
	Some bool
	// Seeds is the number of seeds within which the simulated clusters catch the bug. Zero means
	// the number that the layer uses by default.
	Seeds int
}
