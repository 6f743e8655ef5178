//go:build race

package founding

// underRace shortens the random runs, which have only one goroutine and so no data races.
const underRace = true
