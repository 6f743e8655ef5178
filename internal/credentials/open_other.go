//go:build !unix

package credentials

import "io/fs"

// OpenToOthers returns false on systems where a mode does not limit access.
func OpenToOthers(fs.FileInfo) bool { return false }
