//go:build !unix

package credentials

import "io/fs"

// OpenToOthers always reports false, because a file's mode does not limit access on these systems.
func OpenToOthers(fs.FileInfo) bool { return false }
