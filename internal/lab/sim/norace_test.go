//go:build !race

package sim

const slowly = 1
