//go:build !windows

package transport

import (
	"errors"
	"syscall"
)

// isRefused reports whether the machine reported that no process listens at the address.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }
