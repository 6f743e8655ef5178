//go:build race

package transport

// slowly is the factor by which tests of many seeds are shortened: the race detector makes them ten
// times as long, and a few seeds suffice for it.
const slowly = 5
