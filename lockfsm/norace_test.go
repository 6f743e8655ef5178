//go:build !race

package lockfsm

// underRace shortens tests of many seeds, which run in one goroutine.
const underRace = false
