//go:build !linux

package storage

import (
	"os"
	"runtime"
)

// syncData is a full sync; on darwin Go uses F_FULLFSYNC, which flushes the drive.
func syncData(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return zeroFill(f, size) }

// mount trusts of the other systems only darwin to keep a file's inode number.
func mount(string) (volatile, keepsNumbers bool) { return false, runtime.GOOS == "darwin" }

func freeBytes(string) (bytes uint64, known bool) { return 0, false }
