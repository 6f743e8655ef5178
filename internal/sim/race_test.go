//go:build race

package sim

// The race detector makes the exhaustive tests ten times slower.
const slowly = 10
