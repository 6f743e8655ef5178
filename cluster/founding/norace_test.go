//go:build !race

package founding

const underRace = false
