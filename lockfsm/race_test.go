//go:build race

package lockfsm

// underRace shortens tests of many seeds, in which one goroutine runs.
const underRace = true
