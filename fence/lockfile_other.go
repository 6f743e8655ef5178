//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package fence

import (
	"errors"
	"os"
)

// tryLockFile always fails, because this system has no lock between processes.
func tryLockFile(path string, _ os.FileMode) (*os.File, error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}
