//go:build !unix

package main

import (
	"os"
	"os/exec"
)

// watchdogName is the argument 0 of no process: only unix has the watchdog.
const watchdogName = ""

func watchdog([]string) int { return exitFailed }

// passedOn returns the signals that end the wait for the lock. A running command receives these
// signals directly, because it shares the console.
func passedOn() []os.Signal { return []os.Signal{os.Interrupt} }

func typed(os.Signal) bool { return true }

// child is the command of run.
type child struct {
	ended chan int // receives the exit code
	cmd   *exec.Cmd
}

func start(c *call, path string, environ []string) (*child, error) {
	cmd := exec.Command(path, c.program[1:]...)
	cmd.Args[0] = c.program[0]
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = os.Stdin, c.out, c.errs, environ
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	k := &child{ended: make(chan int, 1), cmd: cmd}
	go func() {
		_ = cmd.Wait() // the state has the exit code
		k.ended <- cmd.ProcessState.ExitCode()
	}()
	return k, nil
}

func (k *child) inForeground() bool { return true }

func (k *child) tell(os.Signal) {}

// lose kills the command, because this platform has no milder signal.
func (k *child) lose() { k.end() }

func (k *child) end() { _ = k.cmd.Process.Kill() } // fails if the command has ended

func private() (restore func()) { return func() {} }

func signalCode(os.Signal) int { return exitFailed }
