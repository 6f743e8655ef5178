//go:build !race

package transport

// The constant slowly is the divisor of the number of seeds. It is greater than 1 only under the
// race detector.
const slowly = 1
