//go:build race

package birth

// underRace makes the walks shorter: one goroutine has no races.
const underRace = true
