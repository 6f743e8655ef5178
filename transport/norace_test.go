//go:build !race

package transport

// slowly is the factor by which tests of many seeds are shortened under the race detector.
const slowly = 1
