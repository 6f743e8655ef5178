//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// passedOn returns the signals that end the wait for the lock. A running command receives these
// signals directly, because it shares the console.
func passedOn() []os.Signal { return []os.Signal{os.Interrupt} }

func typed(os.Signal) bool { return true }

func apart(*exec.Cmd, bool) {}

// tell kills the command on every signal except Interrupt, because this platform has no milder
// signal.
func tell(cmd *exec.Cmd, s os.Signal, _ bool) {
	if s != os.Interrupt {
		_ = cmd.Process.Kill() // fails if the command has ended
	}
}

func private() (restore func()) { return func() {} }

func left(*exec.Cmd, bool) bool { return false }

func signalCode(os.Signal) int { return exitFailed }

func childCode(state *os.ProcessState) int { return state.ExitCode() }
