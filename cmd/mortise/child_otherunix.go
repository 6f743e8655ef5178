//go:build unix && !linux

package main

import (
	"os"
	"syscall"
)

// endWithUs does nothing, because only Linux can end a process with its parent. If the watchdog is
// killed, its command continues.
func endWithUs(*syscall.SysProcAttr) {}

func ownProgram() (string, error) { return os.Executable() }

// adoptOrphans does nothing, because only Linux has it.
func adoptOrphans() {}

// rest returns the command's process group, or the command alone with a terminal, if it is alive.
func rest(target int) []int {
	if target == 0 || syscall.Kill(target, 0) != nil {
		return nil
	}
	return []int{target}
}
