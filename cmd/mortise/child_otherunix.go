//go:build unix && !linux

package main

import "syscall"

// endWithUs does nothing, because only Linux can end a process with its parent. If run is killed,
// its command continues, and the lock expires after its TTL.
func endWithUs(*syscall.SysProcAttr) {}
