package transport

// A burst can make a buffer of a link large. The link releases the buffer if habitUses consecutive
// uses needed only a small part.
const (
	restBytes = 1 << 10 // bytes; a buffer of this size is always kept
	habitUses = 32
)

type habit struct{ small uint8 }

// This method is called after each use of a buffer, with the number of bytes that this use needed.
// It reports whether to keep the buffer.
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
