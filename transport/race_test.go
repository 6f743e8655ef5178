//go:build race

package transport

// slowly is the divisor for the number of seeds under the race detector. The race detector makes
// the tests ten times as long, and needs only a few seeds.
const slowly = 5
