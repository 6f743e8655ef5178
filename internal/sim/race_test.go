//go:build race

package sim

// slowly is the factor by which the exhaustive tests are shortened under the race detector, which
// makes them ten times slower. They run on one goroutine, so the race detector cannot find anything
// in them.
const slowly = 10
