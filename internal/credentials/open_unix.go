//go:build unix

package credentials

import (
	"io/fs"
	"syscall"
)

// OpenToOthers reports whether a secret file is accessible to users other than its owner. If the
// file belongs to root, read access by the file's group is allowed.
func OpenToOthers(info fs.FileInfo) bool {
	perm := info.Mode().Perm()
	owner, known := info.Sys().(*syscall.Stat_t)
	if known && owner.Uid == 0 {
		return perm&0o027 != 0
	}
	return perm&0o077 != 0
}
