//go:build unix

package credentials

import (
	"io/fs"
	"syscall"
)

// OpenToOthers reports whether a file of secrets is open to users that it should be closed to. What
// root lets a group read it does so on purpose.
func OpenToOthers(info fs.FileInfo) bool {
	perm := info.Mode().Perm()
	owner, known := info.Sys().(*syscall.Stat_t)
	if known && owner.Uid == 0 {
		return perm&0o027 != 0
	}
	return perm&0o077 != 0
}
