//go:build wholenative

package whole

import _ "unsafe"

//go:linkname wholeSeed runtime.wholeSeed
func wholeSeed(seed uint64, yields *[3]uint32, refusals *[8]uint32)

//go:linkname wholeRefuseNext runtime.wholeRefuseNext
func wholeRefuseNext(kind int, skip, count uint32)

//go:linkname wholeOnly runtime.wholeOnly
func wholeOnly(*choice)

//go:linkname wholeRefused runtime.wholeRefused
func wholeRefused() []refusal

func init() {
	reseed, refuseNext, refuseOnly, refused = wholeSeed, wholeRefuseNext, wholeOnly, wholeRefused
}
