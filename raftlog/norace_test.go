//go:build !race

package raftlog

const slowly = 1
