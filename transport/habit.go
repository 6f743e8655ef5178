package transport

// A link keeps the buffers that it uses again and again. One that a burst has made large is given
// back after habitUses uses in a row for which a small one would have done, so that a link at rest
// holds little however busy it once was.
const (
	restBytes = 1 << 10 // a buffer of this size is always kept
	habitUses = 32
)

// habit says whether a buffer is kept for the next use. The zero value has seen none.
type habit struct{ small uint8 }

// keeps notes that of a buffer with that capacity so many bytes were used, and reports whether it
// is worth keeping.
func (h *habit) keeps(capacity, used int) bool {
	if capacity <= restBytes || used > capacity/8 {
		h.small = 0
		return true
	}
	if h.small++; h.small < habitUses {
		return true
	}
	h.small = 0
	return false
}
