package transport

// A burst can make a buffer of a link large. If habitUses consecutive uses of such a buffer needed
// only a small part, the link releases the buffer.
const (
	restBytes = 1 << 10 // a buffer of this size is always kept
	habitUses = 32
)

// habit decides whether a buffer is kept for the next use.
type habit struct{ small uint8 }

// keeps records that a use of a buffer with the given capacity needed `used` bytes. It reports
// whether to keep the buffer.
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
