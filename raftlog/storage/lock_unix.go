//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package storage

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// noFollow makes open fail on a symbolic link, which could lead to any file of this user.
const noFollow = syscall.O_NOFOLLOW

// lockFile locks a directory until the returned file is closed. The system releases the lock when
// the process ends for any reason.
func lockFile(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, filePerm)
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
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// abandon unlocks and closes a file that bbolt has mapped. Without the unlock, the mapping would
// keep the file locked.
func abandon(f *os.File) {
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	f.Close()
}

// fileNumber returns a file's inode number. A copy of the file has another number.
func fileNumber(info os.FileInfo) (uint64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Ino), true
}
