//go:build planted

package credentials

import "os"

// planted is the one bug that is switched on, read once.
var planted = os.Getenv("MORTISE_BUG")

// bug reports whether a planted bug is switched on, see internal/planted.
func bug(name string) bool { return name == planted }
