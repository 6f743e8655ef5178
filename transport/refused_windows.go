package transport

import (
	"errors"
	"syscall"
)

// isRefused reports whether the machine reported that no process listens at the address. Windows
// returns WSAECONNREFUSED. Go's own code and in-memory networks return ECONNREFUSED.
func isRefused(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.Errno(10061))
}
