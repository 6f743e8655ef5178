//go:build race

package sim

// slowly is the factor by which the exhaustive tests are shortened under the race detector, which
// makes them ten times slower.
const slowly = 10
