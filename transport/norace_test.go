//go:build !race

package transport

// slowly is the divisor for the number of seeds under the race detector.
const slowly = 1
