//go:build race

package voters

// slowly is the factor by which the exhaustive tests are shortened. The race detector makes them
// five to ten times slower and cannot find anything in them.
const slowly = 10
