//go:build race

package transport

// slowly is by how much tests of many seeds are shortened: the race detector makes them ten times
// as long, and sees what there is in a few.
const slowly = 5
