package storage

import (
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// bootFile contains an ID that the kernel draws when it starts.
const bootFile = "/proc/sys/kernel/random/boot_id"

// siteOf returns the Site of an open lock file.
func siteOf(lock io.Closer) string {
	f, ok := lock.(*os.File)
	if !ok {
		return ""
	}
	var system syscall.Statfs_t
	var file syscall.Stat_t
	if syscall.Fstatfs(int(f.Fd()), &system) != nil || syscall.Fstat(int(f.Fd()), &file) != nil ||
		!locksProve(uint32(system.Type)) {
		return ""
	}
	boot, err := os.ReadFile(bootFile)
	id := strings.TrimSpace(string(boot))
	if err != nil || len(id) != len("00000000-0000-0000-0000-000000000000") {
		return ""
	}
	return fmt.Sprintf("%s %d %d", id, file.Dev, file.Ino)
}

// locksProve reports whether the locks and the file numbers of a file system, by its magic number,
// belong to one kernel.
func locksProve(magic uint32) bool {
	const ext, xfs, btrfs, zfs = 0xef53, 0x58465342, 0x9123683e, 0x2fc12fc1
	switch magic {
	case ext, xfs, btrfs, zfs, magicTmpfs:
		return true
	}
	return false
}
