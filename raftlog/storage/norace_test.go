//go:build !race

package storage

const slowly = 1
