//go:build race

package e2e

// underRace makes tests with a long fake time shorter, because the race detector makes them ten
// times slower.
const underRace = true
