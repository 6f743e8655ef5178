//go:build !linux

package storage

import (
	"os"
	"runtime"
)

// syncData is a full sync; on darwin Go uses F_FULLFSYNC, which flushes the drive.
func syncData(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return zeroFill(f, size) }

// mount is documented in fs_linux.go. Of other systems only darwin's file systems are trusted to
// keep a file's inode number.
func mount(string) (volatile, keepsNumbers bool) { return false, runtime.GOOS == "darwin" }

// freeBytes reports that the free space is not known.
func freeBytes(string) (bytes uint64, known bool) { return 0, false }
