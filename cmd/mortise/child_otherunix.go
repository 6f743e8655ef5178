//go:build unix && !linux

package main

import "syscall"

// endWithUs does nothing: only Linux ends a process with its parent. The lock of a run that was
// killed runs out, and its command goes on.
func endWithUs(*syscall.SysProcAttr) {}
