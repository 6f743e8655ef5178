//go:build race

package founding

// underRace shortens the random runs. They use only one goroutine, so they have no data races.
const underRace = true
