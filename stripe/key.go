package stripe

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"strconv"
)

// Key returns the key of an item's stripe if name has n stripes. The number of the stripe depends
// only on the item and n, and is the same in all versions. It is the big-endian number in the
// first eight bytes of the SHA-256 of the item, times n, divided by 2^64 and rounded down. Key
// panics if n is less than 1.
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
