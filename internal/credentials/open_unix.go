//go:build unix

package credentials

import (
	"io/fs"
	"syscall"
)

// OpenToOthers reports whether users that should not read a secret file can access it. If the file
// belongs to root, read access by its group is considered intended.
func OpenToOthers(info fs.FileInfo) bool {
	perm := info.Mode().Perm()
	owner, known := info.Sys().(*syscall.Stat_t)
	if known && owner.Uid == 0 {
		return perm&0o027 != 0
	}
	return perm&0o077 != 0
}
