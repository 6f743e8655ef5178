package storage

import (
	"errors"
	"os"
	"syscall"
)

// syncData calls fdatasync. Syncing the file's times would cost a second write for each append.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
		}
	}
}

func allocate(f *os.File, size int64) error {
	for {
		err := syscall.Fallocate(int(f.Fd()), 0, 0, size)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.ENOSYS):
			return zeroFill(f, size)
		default:
			return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
		}
	}
}

// Magic numbers of file systems.
const (
	magicTmpfs = 0x01021994
	magicFUSE  = 0x65735546 // FUSE and virtiofs
	magic9P    = 0x01021997
)

// mount reports whether a directory's file system is in memory, and whether a file keeps its inode
// number as long as it exists.
func mount(dir string) (volatile, keepsNumbers bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil {
		return false, false
	}
	kind := uint32(st.Type)
	return kind == magicTmpfs, kind != magicFUSE && kind != magic9P
}

// freeBytes returns the number of bytes that a user without privileges may still write.
func freeBytes(dir string) (bytes uint64, known bool) {
	var st syscall.Statfs_t
	if syscall.Statfs(dir, &st) != nil || st.Bsize <= 0 {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}
