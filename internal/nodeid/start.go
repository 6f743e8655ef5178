package nodeid

import (
	"crypto/sha256"
	"encoding/binary"
)

// siteBits are the lower bits of the number of a start.
const siteBits = 32

// Start returns the number of a start of an instance with a directory: how often the directory was
// started, and in the lower 32 bits a hash of the site, see storage.Dir.Site. Later starts have
// higher numbers. Two copies of a directory count on from the same start, but not at the same site.
// For zero it is zero. The count must be below 2^31.
func Start(count uint64, site string) uint64 {
	if count == 0 {
		return 0
	}
	sum := sha256.Sum256([]byte(site))
	return count<<siteBits | uint64(binary.BigEndian.Uint32(sum[:]))
}

// Count returns the count of a start.
func Count(start uint64) uint64 { return start >> siteBits }

// SameSite reports whether two starts were at the same site. Two different sites have the same hash
// with a chance of one in 2^32.
func SameSite(a, b uint64) bool { return uint32(a) == uint32(b) }
