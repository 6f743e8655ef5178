//go:build !race

package transport

// slowly divides the number of seeds. Only under the race detector it is greater than 1.
const slowly = 1
