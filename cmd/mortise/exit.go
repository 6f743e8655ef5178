package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

// Exit codes. Those of the command that run has run are passed on as they are, so ours stand where
// few programs have theirs.
const (
	exitOK = 0
	// doctor has found something; unlock has ended nothing; data has found none, or another
	// revision
	exitNo        = 1
	exitBusy      = 120 // the lock is held, and -n or -w did not let it wait (longer)
	exitLost      = 121 // the lock was lost while the command ran
	exitNotReady  = 122 // no leader, no majority, no instance in reach, or the group is in its grace
	exitUsage     = 123 // the command line or the configuration is wrong; nothing was done
	exitFailed    = 124 // anything else
	exitDenied    = 125 // the derived secret does not grant it; nothing was done
	exitCannotRun = 126 // the command is there and cannot be run
	exitNotFound  = 127 // there is no such command
	exitSignal    = 128 // plus the signal that ended the command, or that ended the wait for the lock
)

// exitError is an error with a code of its own. Without text nothing is said: somebody else has, or
// there is nothing to say.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func usageError(text string) error { return &exitError{exitUsage, text} }

// report says what went wrong and returns the code that stands for it.
func report(errs io.Writer, command string, err error) int {
	if err == nil {
		return exitOK
	}
	code := codeOf(err)
	if text := err.Error(); text != "" {
		if command != "" {
			command = " " + command
		}
		fmt.Fprintf(errs, "mortise%s: %s\n", command, plain.Lines(text))
		if code == exitNotReady {
			fmt.Fprintln(errs, "mortise doctor, with the same flags, says why and what to do.")
		}
	}
	return code
}

func codeOf(err error) int {
	var own *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &own):
		return own.code
	case errors.Is(err, mortise.ErrNotAllowed):
		return exitDenied
	case errors.Is(err, mortise.ErrNotReady):
		return exitNotReady
	case errors.Is(err, mortise.ErrHeld), errors.Is(err, mortise.ErrQueueFull),
		errors.Is(err, context.DeadlineExceeded):
		return exitBusy
	case errors.Is(err, mortise.ErrLost):
		return exitLost
	case errors.Is(err, mortise.ErrBadKey), errors.Is(err, mortise.ErrBadRequest):
		return exitUsage
	}
	return exitFailed
}
