package stripe

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// Key returns the key of the stripe of an item: one of n stripes of name, always the same for the
// same item and n. The stripe is computed from the first eight bytes of the SHA-256 of the item,
// read as a big-endian fraction of 1, times n, rounded down; this never changes. Key panics if n is
// less than 1. It is safe for concurrent use.
func Key(name, of string, n int) string { return key(name, index(of, n)) }

func index(of string, n int) int {
	if n < 1 {
		panic("stripe: the number of stripes must be at least 1, not " + strconv.Itoa(n))
	}
	sum := sha256.Sum256([]byte(of))
	high, _ := bits.Mul64(binary.BigEndian.Uint64(sum[:]), uint64(n))
	return int(high)
}

func key(name string, i int) string { return name + "/" + strconv.Itoa(i) }
