//go:build !race

package birth

const underRace = false
