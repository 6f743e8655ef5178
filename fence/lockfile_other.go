//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package fence

import (
	"errors"
	"os"
)

// tryLockFile refuses: without a lock between processes a mark in a file would promise what it
// cannot hold.
func tryLockFile(path string, _ os.FileMode) (*os.File, error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}
