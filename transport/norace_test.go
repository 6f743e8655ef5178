//go:build !race

package transport

// slowly is by how much tests of many seeds are shortened under the race detector.
const slowly = 1
