package lockfsm

import (
	"encoding/binary"
	"math/bits"
)

// reader reads values from the front of untrusted bytes. It fails at a length that exceeds the
// remaining bytes. After the first error every read returns zero, so callers check for an error
// once at the end.
type reader struct {
	b     []byte
	fault string
}

func (r *reader) fail(what string) {
	if r.fault == "" {
		r.fault = what
	}
	r.b = nil
}

// uvarint accepts only the shortest form, so that one value has one encoding.
func (r *reader) uvarint(what string) uint64 {
	if len(r.b) > 0 && r.b[0] < 0x80 {
		v := uint64(r.b[0])
		r.b = r.b[1:]
		return v
	}
	v, n := binary.Uvarint(r.b)
	if n <= 0 || r.b[n-1] == 0 {
		r.fail(what)
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) max(limit uint64, what string) uint64 {
	v := r.uvarint(what)
	if v > limit {
		r.fail(what)
		return 0
	}
	return v
}

// sum reads a uvarint and adds it to base. The sum must be at most limit.
func (r *reader) sum(base, limit uint64, what string) uint64 {
	v, carry := bits.Add64(base, r.uvarint(what), 0)
	if carry != 0 || v > limit {
		r.fail(what)
		return 0
	}
	return v
}

// flags reads one byte. It fails if the byte has a bit that is not set in known.
func (r *reader) flags(known byte, what string) byte {
	if len(r.b) == 0 || r.b[0]&^known != 0 {
		r.fail(what)
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

// bytes returns the next n bytes, not copied.
func (r *reader) bytes(n uint64, what string) []byte {
	if n > uint64(len(r.b)) {
		r.fail(what)
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// count reads the number of items that follow, each at least size bytes long. It fails if the
// remaining bytes are too few for that number, so that a false count cannot cause a large
// allocation.
func (r *reader) count(size int, what string) int {
	return int(r.max(uint64(len(r.b)/size), what))
}

func (r *reader) end() {
	if r.fault == "" && len(r.b) > 0 {
		r.fail("trailing bytes")
	}
}

func copied(b []byte) []byte { return append([]byte(nil), b...) }

func uvarintLen(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }
