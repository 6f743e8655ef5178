//go:build !linux

package storage

import (
	"os"
	"runtime"
)

// syncData is a full sync; on darwin Go asks the drive itself (F_FULLFSYNC).
func syncData(f *os.File) error { return f.Sync() }

func allocate(f *os.File, size int64) error { return zeroFill(f, size) }

// mount: see dirfs_linux.go. Elsewhere only darwin's file systems are trusted to keep a file's
// number.
func mount(string) (volatile, keepsNumbers bool) { return false, runtime.GOOS == "darwin" }

// freeBytes: see dirfs_linux.go. Elsewhere the room is not measured.
func freeBytes(string) (bytes uint64, known bool) { return 0, false }
