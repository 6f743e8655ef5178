//go:build race

package transport

// slowly is the divisor for the number of seeds, because the race detector makes the tests ten
// times as long, and needs only a few seeds.
const slowly = 5
