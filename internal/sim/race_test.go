//go:build race

package sim

// slowly shortens the exhaustive tests: the race detector makes them ten times as long and has
// nothing to find in them.
const slowly = 10
