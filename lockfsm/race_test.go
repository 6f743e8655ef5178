//go:build race

package lockfsm

// underRace reports whether the race detector is on. If it is, tests of many seeds are shortened.
// They run in one goroutine, so the detector finds nothing in them.
const underRace = true
