package transport

// A link keeps the buffers that it uses again and again, and releases one that a burst has made
// large after habitUses uses in a row that did not need it.
const (
	restBytes = 1 << 10 // a buffer of this size is always kept
	habitUses = 32
)

// habit decides whether a buffer is kept for the next use.
type habit struct{ small uint8 }

// keeps records that `used` bytes of a buffer with that capacity were used, and reports whether to
// keep the buffer.
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
