//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// passedOn are the signals that the command gets from us.
func passedOn() []os.Signal {
	return []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1,
		syscall.SIGUSR2}
}

// typed reports whether s comes from the keyboard where there is one.
func typed(s os.Signal) bool { return s == syscall.SIGINT || s == syscall.SIGQUIT }

// apart gives the command a process group of its own, so that what it has started gets its signals
// too. At a terminal it stays in ours: it could not read from it otherwise.
func apart(cmd *exec.Cmd, terminal bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !terminal}
	endWithUs(cmd.SysProcAttr)
}

// tell gives the command a signal.
func tell(cmd *exec.Cmd, s os.Signal, terminal bool) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return
	}
	pid := cmd.Process.Pid
	if !terminal {
		pid = -pid
	}
	_ = syscall.Kill(pid, number) // it may have ended
}

// left reports whether the command has left anything in its process group.
func left(cmd *exec.Cmd, terminal bool) bool {
	return !terminal && syscall.Kill(-cmd.Process.Pid, 0) == nil
}

// private makes files that are created until its result is called this user's own. Nobody else may
// create any meanwhile.
func private() (restore func()) {
	before := syscall.Umask(0o177)
	return func() { syscall.Umask(before) }
}

// signalCode is the exit code of a process that a signal has ended.
func signalCode(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return exitSignal + int(number)
	}
	return exitFailed
}

// childCode is the exit code that says how the command has ended.
func childCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalCode(status.Signal())
	}
	return state.ExitCode()
}
