//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package storage

import (
	"io"
	"os"
)

const noFollow = 0

// lockFile only creates the file. On these systems bbolt's lock on its own file must suffice.
func lockFile(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
}

func abandon(f *os.File) { f.Close() }

func fileNumber(os.FileInfo) (uint64, bool) { return 0, false }
