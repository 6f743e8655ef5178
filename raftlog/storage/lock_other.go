//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd || windows)

package storage

import (
	"io"
	"os"
)

const noFollow = 0

// lockFile only creates the file. On these systems only bbolt's lock on meta.db excludes a second
// process.
func lockFile(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
}

func abandon(f *os.File) { f.Close() }

func fileNumber(os.FileInfo) (uint64, bool) { return 0, false }
