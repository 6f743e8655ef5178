//go:build race

package transport

// slowly divides the number of seeds. Under the race detector the tests take ten times as long.
const slowly = 5
