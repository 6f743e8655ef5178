package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// The command run exits with the code of the command that it executes, so mortise's own codes are
// values that few programs use.
const (
	exitOK = 0
	// the answer is no: doctor found a problem, unlock ended no hold, or data did not find the data
	// or the revision
	exitNo        = 1
	exitBusy      = 120 // the lock is held, and the wait that -n or -w allows is over
	exitLost      = 121 // the lock was lost while the command ran
	exitNotReady  = 122 // no leader, majority or instance can be reached, or the group is in its grace
	exitUsage     = 123 // the command line or the configuration is wrong; nothing was done
	exitFailed    = 124 // any other error
	exitDenied    = 125 // the derived secret does not grant the right; nothing was done
	exitCannotRun = 126 // the command of run exists but cannot be executed
	exitNotFound  = 127
	exitSignal    = 128 // plus the number of the signal that ended the command or the wait
)

// exitError is an error with its own exit code. If text is empty, nothing is printed.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func usageError(text string) error { return &exitError{exitUsage, text} }

func report(errs io.Writer, command string, err error) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	if text := err.Error(); text != "" {
		if command != "" {
			command = " " + command
		}
		fmt.Fprintf(errs, "mortise%s: %s\n", command, plain.Lines(sentence(text, toOperators)))
		if code == exitNotReady {
			fmt.Fprintln(errs, "Run mortise doctor with the same flags: it says why, and what to do.")
		}
	}
	return code
}

func codeOf(err error) int {
	var own *exitError
	var held *mortise.HeldError // also of a lock that others wait for, and that no caller holds
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, mortise.ErrNotAllowed):
		return exitDenied
	case errors.Is(err, mortise.ErrNotReady):
		return exitNotReady
	case errors.As(err, &held), errors.Is(err, mortise.ErrQueueFull):
		return exitBusy
	case errors.Is(err, context.DeadlineExceeded): // no holder is known
		return exitNotReady
	case errors.Is(err, mortise.ErrLost):
		return exitLost
	case errors.Is(err, mortise.ErrBadKey), errors.Is(err, mortise.ErrBadRequest):
		return exitUsage
	}
	return exitFailed
}
