//go:build race

package storage

// slowly is by how much the exhaustive tests are shortened: the race detector makes them five times
// as long and has nothing to see in them.
const slowly = 5
