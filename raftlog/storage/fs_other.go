//go:build !linux

package storage

import (
	"os"
	"runtime"
)

// syncData does a full sync. On darwin, Go uses F_FULLFSYNC, which flushes the drive.
func syncData(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return zeroFill(f, size) }

// mount always reports that the file system is not in memory. It reports only on darwin that a file
// keeps its inode number.
func mount(string) (volatile, keepsNumbers bool) { return false, runtime.GOOS == "darwin" }

func freeBytes(string) (bytes uint64, known bool) { return 0, false }
