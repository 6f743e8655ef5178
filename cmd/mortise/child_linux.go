package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWithUs makes the kernel kill the command when its watchdog is killed, because no other process
// watches the lock.
func endWithUs(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }

// ownProgram returns the path of this program, which is right after a new version was installed.
func ownProgram() (string, error) { return "/proc/self/exe", nil }

// adoptOrphans makes this process the parent of those of its descendants that lose their parents.
func adoptOrphans() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // cannot fail since Linux 3.4
}

// rest returns the living descendants of this process. Since it adopts orphans, these are all
// processes that the command has started, in whatever process group or session they are.
func rest(int) (all []int) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := map[int][]int{}
	dead := map[int]bool{}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + d.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// The name of the program is in parentheses, and may contain any character.
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			children[parent] = append(children[parent], pid)
			dead[pid] = fields[0][0] == 'Z' || fields[0][0] == 'X'
		}
	}
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, pid := range children[next[0]] {
			next = append(next, pid)
			if !dead[pid] {
				all = append(all, pid)
			}
		}
	}
	return all
}
