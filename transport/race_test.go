//go:build race

package transport

// slowly is the factor by which tests of many seeds are shortened: the race detector makes them ten
// times as long, and needs only a few.
const slowly = 5
