//go:build !windows

package transport

import (
	"errors"
	"syscall"
)

// isRefused reports whether a dial failed because the machine reported that no process listens.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
