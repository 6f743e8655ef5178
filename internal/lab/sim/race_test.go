//go:build race

package sim

// slowly is the divisor that shortens the exhaustive tests, because the race detector makes them
// ten times slower.
const slowly = 10
