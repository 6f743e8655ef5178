//go:build !unix

package mortise

import "io/fs"

// openToOthers reports nothing where a mode does not say who may open a file.
func openToOthers(fs.FileInfo) bool { return false }
