package transport

import (
	"errors"
	"syscall"
)

// isRefused reports whether a dial failed because the machine answered that no process listens:
// WSAECONNREFUSED, or the value of Go's own code and of in-memory networks.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.Errno(10061))
}
