//go:build race

package storage

// slowly is the factor by which exhaustive tests are shortened under the race detector. The
// detector makes them five times slower and finds nothing in them.
const slowly = 5
