//go:build race

package founding

// underRace makes the random runs shorter. They use one goroutine, so the race detector finds
// nothing.
const underRace = true
