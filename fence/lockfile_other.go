//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package fence

import (
	"errors"
	"os"
)

// tryLockFile fails: without a lock between processes a mark in a file protects nothing.
func tryLockFile(path string, _ os.FileMode) (*os.File, error) {
	return nil, &os.PathError{Op: "lock", Path: path, Err: errors.ErrUnsupported}
}
