//go:build !unix

package mortise

import "io/fs"

// openToOthers reports false where a mode does not limit access.
func openToOthers(fs.FileInfo) bool { return false }
