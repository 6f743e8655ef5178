//go:build !race

package mortise

const underRace = false
