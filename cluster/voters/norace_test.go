//go:build !race

package voters

const slowly = 1
