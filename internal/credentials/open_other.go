//go:build !unix

package credentials

import "io/fs"

// OpenToOthers reports false where a mode does not limit access.
func OpenToOthers(fs.FileInfo) bool { return false }
