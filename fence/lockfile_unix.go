//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package fence

import (
	"errors"
	"os"
	"syscall"
)

// tryLockFile locks the file and returns it, or nil if it is already locked.
func tryLockFile(path string, perm os.FileMode) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, perm)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, f.Close()
	}
	if err != nil {
		return nil, errors.Join(&os.PathError{Op: "flock", Path: path, Err: err}, f.Close())
	}
	return f, nil
}
