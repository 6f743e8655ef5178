//go:build race

package e2e

// underRace makes tests with a long fake time shorter. The race detector makes such tests ten times
// slower, and finds nothing new after the first minutes.
const underRace = true
