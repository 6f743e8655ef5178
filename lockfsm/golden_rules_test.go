//go:build !nextrules

package lockfsm

import "math/rand/v2"

// later appends what only the next version has.
func (*golden) later(*rand.Rand) {}
