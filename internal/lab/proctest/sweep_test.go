//go:build linux

package proctest

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// runName returns the prefix of the names of this process's namespaces. It contains the start time
// of the process, so no other process has it.
func runName() string { return fmt.Sprintf("mt%d-%s", os.Getpid(), startOf(os.Getpid())) }

// startOf returns the start of a process, in the kernel's ticks, or "" if there is no such process.
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before ") " may contain any characters
	if fields := strings.Fields(rest); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// sweep removes the namespaces of unfinished runs, together with their processes.
func sweep() {
	for _, space := range spaces() {
		if !abandoned(space) {
			continue
		}
		pids, _ := exec.Command("ip", "netns", "pids", space).Output()
		for _, text := range strings.Fields(string(pids)) {
			if pid, err := strconv.Atoi(text); err == nil && pid > 1 {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		_ = exec.Command("ip", "netns", "del", space).Run()
	}
}

func abandoned(space string) bool {
	parts := strings.Split(space, "-")
	number, ours := strings.CutPrefix(parts[0], "mt")
	pid, err := strconv.Atoi(number)
	return ours && err == nil && len(parts) >= 3 && startOf(pid) != parts[1]
}
