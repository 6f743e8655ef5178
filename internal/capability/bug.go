//go:build !planted

package capability

// bug reports whether a planted bug is switched on, see internal/planted. Without the build tag it is constant: it costs nothing.
func bug(string) bool { return false }
