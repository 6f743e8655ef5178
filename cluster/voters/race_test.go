//go:build race

package voters

// slowly is by how much the exhaustive tests are shortened: the race detector makes them five to
// ten times as long and has nothing to see in them.
const slowly = 10
