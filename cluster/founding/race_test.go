//go:build race

package founding

// underRace makes the walks shorter: one goroutine has no races.
const underRace = true
