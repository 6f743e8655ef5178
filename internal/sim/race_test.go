//go:build race

package sim

// slowly shortens the exhaustive tests, which the race detector makes ten times slower.
const slowly = 10
