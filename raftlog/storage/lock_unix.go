//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package storage

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// noFollow has an open fail at a symbolic link: what is opened in a Dir may be written, and a link
// may lead to any file of this user.
const noFollow = syscall.O_NOFOLLOW

// lockFile takes the lock of a directory for as long as the file is open: the system lets go of it
// when the process ends, however it ends.
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

// abandon closes a file that bbolt has locked and mapped. The map would keep the lock beyond the
// close.
func abandon(f *os.File) {
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	f.Close()
}

// fileNumber returns the number that the file system knows a file by: a copy has another.
func fileNumber(info os.FileInfo) (uint64, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return uint64(st.Ino), true
}
