//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1,
		syscall.SIGUSR2}
}

func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// apart gives the command its own process group, so that signals also reach the processes that the
// command has started. With a terminal, the command stays in the process group of run, because a
// command in another group could not read from the terminal.
func apart(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !terminal}
	endWithUs(cmd.SysProcAttr)
}

func tell(cmd *exec.Cmd, s os.Signal, terminal bool) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	pid := cmd.Process.Pid
	if !terminal {
		pid = -pid
	}
	_ = syscall.Kill(pid, number) // fails if the group has ended
}

func left(cmd *exec.Cmd, terminal bool) bool {
	return !terminal && syscall.Kill(-cmd.Process.Pid, 0) == nil
}

// private restricts new files of this process to the user who runs it, until restore is called. No
// other goroutine may create files until then.
func private() (restore func()) {
	before := syscall.Umask(0o177)
	return func() { syscall.Umask(before) }
}

func signalCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitFailed
}

func childCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalCode(status.Signal())
	}
	return state.ExitCode()
}
