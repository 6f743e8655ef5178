//go:build !unix

package credentials

import "io/fs"

// OpenToOthers reports false, since a mode does not limit access on these systems.
func OpenToOthers(fs.FileInfo) bool { return false }
