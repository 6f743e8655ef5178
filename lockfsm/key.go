package lockfsm

import "unicode/utf8"

// validKey reports whether key may name a lock. It does not use package unicode, whose tables
// change with the Go release, because replicas of different releases must agree.
func validKey(key []byte, maxBytes uint32) bool {
	if len(key) == 0 || uint64(len(key)) > uint64(maxBytes) {
		return false
	}
	for i := 0; i < len(key); {
		if b := key[i]; b < utf8.RuneSelf {
			if b < 0x20 || b == 0x7f {
				return false
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(key[i:])
		if (r == utf8.RuneError && n == 1) || (0x80 <= r && r <= 0x9f) {
			return false
		}
		i += n
	}
	return true
}
