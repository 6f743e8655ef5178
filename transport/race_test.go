//go:build race

package transport

// The constant slowly is the divisor of the number of seeds. Under the race detector, the tests
// take ten times as long.
const slowly = 5
