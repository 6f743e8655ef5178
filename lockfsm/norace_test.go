//go:build !race

package lockfsm

// underRace reports whether the race detector is on. Tests of many seeds are then shorter, since
// they run in one goroutine.
const underRace = false
