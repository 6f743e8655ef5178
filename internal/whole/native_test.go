//go:build wholenative

package whole

import _ "unsafe"

//go:linkname wholeSeed runtime.wholeSeed
func wholeSeed(seed uint64, yields *[3]uint32, refusals *[6]uint32)

func init() { reseed = wholeSeed }
