//go:build unix && !(darwin || dragonfly || freebsd || netbsd || openbsd)

package main

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
