//go:build race

package e2e

// underRace shortens what is long in fake time: the race detector makes it ten times as long, and
// sees nothing after the first minutes.
const underRace = true
