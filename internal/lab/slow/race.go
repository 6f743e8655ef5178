//go:build race

package slow

// Race reports whether the race detector is on.
const Race = true
