//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// passedOn are the signals that end the wait for the lock. The command is in our console and gets
// them itself.
func passedOn() []os.Signal { return []os.Signal{os.Interrupt} }

func typed(os.Signal) bool { return true }

func apart(*exec.Cmd, bool) {}

// tell ends the command: there is nothing milder here.
func tell(cmd *exec.Cmd, s os.Signal, _ bool) {
	if s != os.Interrupt {
		_ = cmd.Process.Kill() // it may have ended
	}
}

func private() (restore func()) { return func() {} }

func left(*exec.Cmd, bool) bool { return false }

func signalCode(os.Signal) int { return exitFailed }

func childCode(state *os.ProcessState) int { return state.ExitCode() }
