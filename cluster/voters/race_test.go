//go:build race

package voters

// slowly is the factor by which the exhaustive tests are shortened. The race detector makes these
// tests five to ten times slower, and cannot find any races in them.
const slowly = 10
