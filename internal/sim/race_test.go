//go:build race

package sim

// slowly is by how much the exhaustive tests are shortened: the race detector makes them ten times
// as long and has nothing to see in them.
const slowly = 10
